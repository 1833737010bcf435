"""The commands around a service, as an operator meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from phdstream.app.cli import app
from phdstream.app.config import load_config
from phdstream.app.serve import reloaded
from phdstream.errors import ConfigError, InputError, PhdstreamError
from tests.service.streams import HandClock, service_at, write_config

RUN = CliRunner()


def out(*command: object, status: int = 0) -> str:
    result = RUN.invoke(app, [str(word) for word in command])
    said = result.output + str(result.exception or "")
    assert result.exit_code == status, said
    return said


class TestTokens:
    def test_made_shown_once_listed_removed(self, tmp_path: Path) -> None:
        path = write_config(tmp_path)
        token = out("token", path, "sensor", "--role", "ingest", "--role", "read").split()[0]
        assert out("token", path) == "sensor\tingest, read\n"
        kept = (tmp_path / "private" / "tokens.json").read_text()
        assert token not in kept
        assert (tmp_path / "private" / "tokens.json").stat().st_mode & 0o077 == 0
        service = service_at(path, HandClock())
        found = service.tokens.find(token)
        assert found is not None
        assert found.name == "sensor"
        assert service.tokens.find(token + "x") is None
        out("token", path, "sensor", "--remove")  # while the service runs: at once
        assert service.tokens.find(token) is None
        service.stop()

    @pytest.mark.parametrize(
        ("words", "said"),
        [(["a b", "--role", "read"], "letters"), (["x"], "needs a role"), (["x", "--role", "root"], "needs a role"),
         (["nobody", "--remove"], "no token 'nobody'")],
    )  # fmt: skip
    def test_mistakes(self, tmp_path: Path, words: list[str], said: str) -> None:
        assert said in out("token", write_config(tmp_path), *words, status=1)


class TestDoctor:
    def test_a_service_in_order(self, tmp_path: Path) -> None:
        path = write_config(tmp_path)
        out("token", path, "sensor", "--role", "ingest")
        service_at(path, HandClock(25)).stop()
        said = out("doctor", path)
        assert "FAIL" not in said
        assert "ok  journal" in said

    def test_what_is_wrong_is_said(self, tmp_path: Path) -> None:
        path = write_config(tmp_path, service='key_file = "keys"\nhost = "0.0.0.0"')
        service_at(write_config(tmp_path), HandClock(25)).stop()
        path = write_config(tmp_path, service='key_file = "keys"\nhost = "0.0.0.0"')
        (tmp_path / "private" / "intake.db").write_bytes(b"nonsense" * 1000)
        (tmp_path / "private").chmod(0o755)
        said = out("doctor", path, status=1)
        for words in ("chmod 700", "FAIL  journal", "phdstream key CONFIG", "none may send events"):
            assert words in said
        (tmp_path / "stream.toml").write_text("nonsense")
        assert "FAIL  configuration" in out("doctor", path, status=1)


class TestReload:
    def test_limits_are_taken_over_and_promises_are_not(self, tmp_path: Path) -> None:
        path = write_config(tmp_path)
        config = load_config(path)
        write_config(tmp_path, service='rate = 7\nbody = "1MB"')
        assert reloaded(config, path).rate == 7
        for change in ({"service": 'late = "next"'}, {"ticks": 'grace = "9s"'}, {"stream": "window = 3"}):
            write_config(tmp_path, **change)
            with pytest.raises(InputError):
                reloaded(config, path)
        path.write_text(write_config(tmp_path).read_text().replace("epsilon = 1.0", "epsilon = 1.1"))
        with pytest.raises(InputError, match="cannot be reloaded"):
            reloaded(config, path)
        path.write_text(write_config(tmp_path).read_text().replace("depth = 12", "depth = 14"))
        with pytest.raises(InputError, match="domain"):
            reloaded(config, path)


class TestSettings:
    @pytest.mark.parametrize(
        ("setting", "said"),
        [
            ('late = "never"', "late must be"), ("port = 70000", "port must be"), ('body = "huge"', "must be a size"),
            ('memory = "1MB"', "at least as large as body"), ('ahead = "soon"', "ahead"), ('hots = "x"', "did you"),
            ('name = "V1"', "short name"), ('public = 1', "valid TOML|true or false"), ('host = "a b"', "address"),
        ],
    )  # fmt: skip
    def test_mistakes_are_named(self, tmp_path: Path, setting: str, said: str) -> None:
        with pytest.raises(ConfigError, match=said):
            load_config(write_config(tmp_path, service=setting))

    def test_run_without_files_says_what_to_do(self, tmp_path: Path) -> None:
        assert "phdstream serve" in out("run", write_config(tmp_path), status=1)

    def test_ticks_by_rows_cannot_be_served(self, tmp_path: Path) -> None:
        path = write_config(tmp_path)
        text = path.read_text().replace('every = "10s"\nstart = 2024-05-31T00:00:00Z', "rows = 5")
        path.write_text(text)
        with pytest.raises(PhdstreamError, match="ticks close by the clock"):
            service_at(path, HandClock())


@pytest.mark.slow
def test_a_process_reloads_and_ends_gracefully(tmp_path: Path) -> None:
    """With a listener at its stream of events: it is told, and the service ends at once."""
    path = write_config(tmp_path)
    command = [sys.executable, "-m", "phdstream", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        _reload_and_end(tmp_path, process)


def _reload_and_end(tmp_path: Path, process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        if line.startswith("Serving at "):
            address = line.split()[2]
            break
        lines.append(line)
    listener = urllib.request.urlopen(f"{address}/stream", timeout=60)
    assert listener.readline()
    write_config(tmp_path, service="rate = 9")
    process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 120
    while json.load(urllib.request.urlopen(address, timeout=60))["rules"]["requests_per_second"] != 9:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    began = time.monotonic()
    os.kill(process.pid, signal.SIGTERM)
    rest = process.stderr.read()
    assert process.wait(60) in (0, -signal.SIGTERM)
    assert time.monotonic() - began < 25  # it would wait 30 seconds for a listener that is not told
    listener.read()
    listener.close()
    assert all(json.loads(line)["level"] for line in [*lines, *rest.splitlines()] if line.startswith("{"))
    assert "Traceback" not in rest
