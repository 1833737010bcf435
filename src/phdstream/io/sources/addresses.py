"""Addresses of objects in stores, such as ``s3://bucket/events/*.parquet``: what they name, and what is said besides.

As `pyarrow.fs.FileSystem.from_uri` takes them. What follows the last ``?``, if it is ``name=value`` pairs, says how to
reach the store; all before it is the object's key as it is, with nothing escaped. An address without those settings is
the object's name: in messages, and in the ledger of what was counted. Secrets have no place in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from phdstream.errors import ConfigError, did_you_mean

__all__ = ["Address", "is_address", "local_path"]

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?]*)/?(.*)", re.DOTALL)
_SETTINGS = re.compile(r"\?([^?=/]+=[^?]*)$")
_NAME = re.compile(r"[a-z_]{1,30}")
_HADOOP = ("user", "replication", "default_block_size", "kerb_ticket")
_KNOWN: dict[str, tuple[str, ...]] = {
    "s3": ("region", "scheme", "endpoint_override", "tls_ca_file_path"),
    "gs": ("scheme", "endpoint_override", "project_id", "retry_limit_seconds"),
    "abfss": (
        "blob_storage_authority", "dfs_storage_authority", "enable_tls", "credential_kind", "tenant_id", "client_id",
    ),
    "hdfs": _HADOOP,
    "viewfs": _HADOOP,
    "file": (),
}  # fmt: skip
"""Schemes, and the settings that an address may have: those of Arrow that hold no secret."""
_SAME = {"gcs": "gs", "abfs": "abfss"}
_PATIENCE = {"gs": {"retry_limit_seconds": "30"}}
"""Google's client would try for a quarter of an hour by default."""


@dataclass(frozen=True)
class Address:
    """One address. ``place`` is its bucket, container or host; ``key`` may be a pattern."""

    scheme: str
    place: str
    key: str
    settings: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return what an address says, or what is wrong with it (never quoting what may be a secret).

        >>> found = Address.parse("s3://bucket/events/2026-??.csv?region=eu-west-1")
        >>> found.name, found.store
        ('s3://bucket/events/2026-??.csv', 's3://bucket?region=eu-west-1')
        >>> Address.parse("s3://AKIA:secret@bucket/a.csv")
        Traceback (most recent call last):
        ...
        phdstream.errors.ConfigError: [input] files: an address in bucket holds credentials. Leave them out: they come \
from the environment, from the files of the cloud's own tools, or from the machine's role.
        """
        if "\0" in text or (match := _ADDRESS.fullmatch(text)) is None:
            raise ConfigError("[input] files: an address must be like s3://bucket/events/*.parquet.")
        scheme, place, key = match[1].lower(), match[2], match[3]
        if scheme == "s3a":
            raise ConfigError("[input] files: write s3:// instead of s3a://, which is Hadoop's name for the same.")
        scheme = _SAME.get(scheme, scheme)
        if scheme not in _KNOWN:
            raise ConfigError(f"[input] files: no files are read from {scheme}://: {did_you_mean(scheme, _KNOWN)}")
        settings = _SETTINGS.search(key)
        if settings:
            key = key[: settings.start()]
        found = cls(scheme, _without_credentials(scheme, place), key, settings[1] if settings else "")
        found._check()
        return found

    def _check(self) -> None:
        if not self.key or (not self.place and self.scheme not in ("file", "hdfs", "viewfs")):
            raise ConfigError(f"[input] files: {self.scheme}:// needs a bucket and an object's key in it.")
        for name, value in self._settings():
            if name not in _KNOWN[self.scheme]:
                known = ", ".join(_KNOWN[self.scheme]) or "none"
                which = f"a setting '{name}'" if _NAME.fullmatch(name) else "a setting that is not shown"
                raise ConfigError(f"[input] files: {self.name} has {which}; known here: {known}.")
            if "@" in value:
                raise ConfigError(f"[input] files: {name} of {self.name} must be without credentials.")

    def _settings(self) -> list[tuple[str, str]]:
        """Return names and values; a part that is no pair has no name."""
        pairs = [pair.partition("=") for pair in self.settings.split("&") if self.settings]
        return [(name if equals else "", value) for name, equals, value in pairs]

    @property
    def name(self) -> str:
        """What it is called: the address without settings."""
        return self.with_key(self.key)

    def with_key(self, key: str) -> str:
        """Return what another object of the same store is called."""
        return f"{self.scheme}://{self.place.removeprefix('anonymous@')}/{key}"

    @property
    def store(self) -> str:
        """What Arrow opens."""
        given = _PATIENCE.get(self.scheme, {}) | dict(self._settings())
        settings = "&".join(f"{name}={value}" for name, value in given.items())
        root = f"{self.scheme}://{self.place}" + ("/" if self.scheme in ("hdfs", "viewfs") else "")
        return f"{root}?{settings}" if settings else root


def _without_credentials(scheme: str, place: str) -> str:
    """Return a place, refused if it holds a password; in an address of Azure, what is before the @ is a name."""
    before, at, host = place.rpartition("@")
    harmless = not at or (scheme == "gs" and before == "anonymous") or (scheme == "abfss" and ":" not in before)
    if not harmless:
        raise ConfigError(
            f"[input] files: an address in {host} holds credentials. Leave them out: they come from the environment, "
            "from the files of the cloud's own tools, or from the machine's role."
        )
    return place


def is_address(name: str) -> bool:
    """Whether a name of files is an address, also if it is a wrong one.

    >>> is_address("gs://bucket/a.csv"), is_address("events/*.csv")
    (True, False)
    """
    return _ADDRESS.fullmatch(name) is not None


def local_path(name: str) -> str | None:
    """Return the path that a name of files is: itself, or that of a ``file://`` address; None if it is an object's.

    >>> local_path("file:///data/a%20b.csv"), local_path("a%20b.csv"), local_path("s3://bucket/a.csv")
    ('/data/a b.csv', 'a%20b.csv', None)
    """
    if not is_address(name):
        return name
    address = Address.parse(name)
    if address.scheme != "file":
        return None
    if address.place not in ("", "localhost"):
        raise ConfigError("[input] files: an address of a file begins with file:/// (three slashes): it is of here.")
    return "/" + unquote(address.key)
