"""The commands, as a newcomer types them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from phdstream import __version__
from tests.app.commands import phdstream, phdstream_process
from tests.app.test_run import SIMULATED, digests, released, write


def test_help_and_version() -> None:
    assert "run" in phdstream_process("--help").stdout
    assert phdstream("--version").stdout.strip() == f"phdstream {__version__}"


@pytest.mark.slow
def test_run_says_what_it_promised_and_where_it_is(tmp_path: Path) -> None:
    done = phdstream_process("run", write(tmp_path))
    assert done.returncode == 0
    assert "1-differentially private" in done.stdout
    assert "Released ticks 1 to 6" in done.stdout
    assert len(released(tmp_path)) == 6


def test_private_notes_go_to_standard_error_only(tmp_path: Path) -> None:
    config = write(tmp_path, more=SIMULATED)
    config.write_text(config.read_text().replace("[40, 50]", "[42, 50]"))
    done = phdstream("run", config)
    assert done.returncode == 0
    assert "outside" not in done.stdout
    assert "PRIVATE, for the operator only" in done.stderr
    assert "outside the domain" in done.stderr
    assert "simulated, not private" in done.stdout


def test_an_error_is_one_message_and_status_1(tmp_path: Path) -> None:
    done = phdstream_process("run", tmp_path / "nothing.toml")
    assert done.returncode == 1
    assert done.stderr.startswith("phdstream: there is no configuration file")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kilobytes", [4, 20, 28])
@pytest.mark.slow
def test_a_disk_that_fills_up_loses_nothing(tmp_path: Path, kilobytes: int) -> None:
    """A real failing write: no file may grow past a limit. The same command, with room again, finishes the job."""
    config = write(tmp_path)
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({kilobytes * 1024},) * 2)"
    code = f"{limit}; import sys; from phdstream.app.cli import main; sys.argv = ['p', 'run', {str(config)!r}]; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    before = digests(tmp_path)
    again = phdstream("run", config)
    assert again.returncode == 0, again.stderr
    after = digests(tmp_path)
    assert len(released(tmp_path)) == len(released(tmp_path, "points")) == 6
    rewritten = {"manifest.json"} if any("cells" in name for name in before) else {"manifest.json", "stream.json"}
    assert all(after[name] == digest for name, digest in before.items() if name not in rewritten)


@pytest.mark.slow
def test_plan() -> None:
    done = phdstream("plan", "--epsilon", "0.5", "--unit", "user:2,2", "--deletes", "--ticks", "9")
    assert done.returncode == 0
    assert "0.5-differential privacy for each user" in done.stdout
    assert "by tracking (the default method)" in done.stdout
    paper = phdstream("plan", "--method", "phdstream")
    assert "by the paper's method (PHDStream)" in paper.stdout
    wrong = phdstream("plan", "--unit", "user:many")
    assert wrong.returncode == 1
    assert "user:4,4" in wrong.stderr


@pytest.mark.slow
def test_demo_needs_nothing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = phdstream("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "phdstream-demo" / "index.html"
    assert str(page) in done.stdout.replace("\n", "")
    html = page.read_text()
    assert html.count("<img") == 3
    assert "ε = 0.5" in html
    assert "ε = 2" in html
    assert all((page.parent / name).stat().st_size > 10_000 for name in ("error.png", "points-epsilon-2.png"))
    city, private = page.parent / "city.html", page.parent / "PRIVATE-custodian" / "index.html"
    assert 300_000 < city.stat().st_size < 4_000_000
    assert "1-differentially private" in city.read_text()
    assert private.stat().st_mode & 0o077 == 0
    assert "PRIVATE. True pickups." in private.read_text()
    assert html.index("What the public sees") < html.index("PRIVATE: what the custodian sees")
