"""`phdstream run` with sinks, as an operator meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from phdstream.app.cli import app
from phdstream.app.config import load_config
from phdstream.app.serve import reloaded
from phdstream.errors import ConfigError, InputError
from phdstream.io.archive import open_archive
from tests.app.test_run import SIMULATED, TICKS, released, write, write_config
from tests.io.sinks.places import OnRedis
from tests.servers import running, start_redis

SINK = SIMULATED + '\n[[sinks]]\ntype = "redis"\nurl = "redis://127.0.0.1:{port}/0"\nkey = "taxis"\n'


def test_a_sink_that_is_down_holds_up_nothing_and_is_caught_up(tmp_path: Path) -> None:
    for server in running(start_redis(tmp_path / "redis")):
        server.kill()
        more = SINK.format(port=server.port)
        path = write(tmp_path, more=more, ticks=TICKS.replace("03-07", "03-04"))
        said = CliRunner().invoke(app, ["run", str(path)])
        assert said.exit_code == 0
        assert "Released ticks 1 to 3." in said.output
        assert "Warning: sink redis:taxis is at tick 0, behind the folder" in said.output
        assert len(released(tmp_path)) == 3
        server.start()
        for last, ticks in ((3, TICKS.replace("03-07", "03-04")), (6, TICKS)):  # with nothing new to do, too
            said = CliRunner().invoke(app, ["run", str(write_config(tmp_path, more=more, ticks=ticks))])
            assert said.exit_code == 0
            assert "Warning: sink" not in said.output
            archive = open_archive(tmp_path / "out")
            stream = json.loads((tmp_path / "out" / "stream.json").read_text())["stream"]
            told = OnRedis(server).messages("taxis")
            ends: list[dict[str, Any]] = [message for message in told if message.get("complete")]
            assert [(end["tick"], end["stream"]) for end in ends] == [(tick, stream) for tick in range(1, last + 1)]
            signs = sum(message.get("sign", 0) for message in told)
            assert signs == len(archive.release(last).sample())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[[sink]]\ntype = "redis"', r"unknown section \[sink\]: did you mean 'sinks'"),
        ('[sinks]\ntype = "redis"', r"write \[\[sinks\]\]"),
        ('[[sinks]]\ntype = "reddis"', "did you mean 'redis'"),
    ],
)
def test_mistakes_are_found_before_anything_is_read(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config(write_config(tmp_path, more=more))


def test_a_running_service_takes_no_other_sinks_over(tmp_path: Path) -> None:
    ticks = 'every = "1d"\nstart = 2024-03-01'
    path = write_config(tmp_path, more=SINK.format(port=1), ticks=ticks)
    config = load_config(path)
    assert reloaded(config, path) == config.service
    write_config(tmp_path, more=SINK.format(port=2), ticks=ticks)
    with pytest.raises(InputError, match="sinks have changed in the file: restart"):
        reloaded(config, path)
