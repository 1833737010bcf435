"""An S3 server with a door before it, where a test sees every request, may delay or refuse it, or act in between."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.servers import S3

__all__ = ["Store", "running_store", "use_credentials"]

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "a-secret-of-nobody",
    "AWS_EC2_METADATA_DISABLED": "true",  # else asked for a role, by a request that leaves the machine
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}
Request = tuple[str, str]
"""Method and path."""


def use_credentials(patch: pytest.MonkeyPatch) -> None:
    """Set what a store is asked with, as the environment of a machine does."""
    for name, value in CREDENTIALS.items():
        patch.setenv(name, value)


class Store:
    """A store with one bucket at a time. ``before`` is asked before each request; a code of S3 is answered with 403."""

    def __init__(self, folder: Path) -> None:
        import boto3

        self.server = S3(folder)
        self.seen: list[Request] = []
        self.before: Callable[[Request], str | None] = lambda request: None
        self.door = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.door.daemon_threads = True
        threading.Thread(target=self.door.serve_forever, daemon=True).start()
        self.client: Any = boto3.client(
            "s3", endpoint_url=f"http://{self.server.address}", region_name="us-east-1",
            aws_access_key_id="AKIAEXAMPLE", aws_secret_access_key="none",
        )  # fmt: skip
        self.bucket, self._number = "", 0

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                request = self.command, self.path.partition("?")[0]
                store.seen.append(request)
                refused = store.before(request)
                if refused is not None:
                    about = [("Content-Type", "application/xml")]
                    text = f'<?xml version="1.0"?><Error><Code>{refused}</Code><Message>{refused}</Message></Error>'
                    self._answer(403, about, text.encode())
                    return
                onward = http.client.HTTPConnection(store.server.address, timeout=30)
                onward.request(self.command, self.path, headers=dict(self.headers.items()))
                answer = onward.getresponse()
                length = [("Content-Length", answer.headers.get("Content-Length") or "0")]
                content = answer.read()
                self._answer(answer.status, answer.getheaders(), content, length)
                onward.close()

            do_HEAD = do_GET  # noqa: N815

            def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, length: Any = ()) -> None:
                self.send_response_only(status)
                kept = [(k, v) for k, v in headers if k.lower() not in ("content-length", "transfer-encoding")]
                about = length if self.command == "HEAD" else [("Content-Length", str(len(content)))]
                for name, value in [*kept, *about]:
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def log_message(self, *about: Any) -> None:
                pass

        return Handler

    def fresh(self) -> None:
        """Begin a new bucket."""
        self._number += 1
        self.bucket = f"bucket{self._number}"
        self.client.create_bucket(Bucket=self.bucket)
        self.seen.clear()
        self.before = lambda request: None

    def put(self, key: str, content: bytes | str | Path) -> str:
        """Write an object, and return its name."""
        content = content.read_bytes() if isinstance(content, Path) else content
        self.client.put_object(Bucket=self.bucket, Key=key, Body=content)
        return f"s3://{self.bucket}/{key}"

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=key)

    @property
    def settings(self) -> str:
        """How to reach it, behind the ? of an address."""
        return f"endpoint_override=127.0.0.1:{self.door.server_address[1]}&scheme=http&region=us-east-1"

    def address(self, key: str, bucket: str = "") -> str:
        """Return the address of a key, or of a pattern."""
        return f"s3://{bucket or self.bucket}/{key}?{self.settings}"

    def fetched(self) -> list[str]:
        """Return the keys of which any content was sent, in order."""
        prefix = f"/{self.bucket}/"
        return [path.removeprefix(prefix) for method, path in self.seen if method == "GET" and path != prefix[:-1]]

    def close(self) -> None:
        self.door.shutdown()
        self.door.server_close()
        self.server.kill()


def running_store(folder: Path) -> Iterator[Store]:
    """Give a store, and end it afterwards: the body of a fixture."""
    store = Store(folder)
    try:
        yield store
    finally:
        store.close()
