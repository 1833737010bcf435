"""Every block of Python in the documentation is run: as a doctest, by the site's build, or here."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import phdstream as phd
import phdstream.errors
from phdstream.app.cli import app as command_line
from phdstream.app.config import load_config
from tests.packaging.environment import ROOT
from tests.service.api.served import Served, listening

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
HERE = {"docs/evaluation.md": ["# mine.py", "# compare.py"], "docs/ogc.md": ["import pyogrio"]}
"""Blocks that need files or a service around them, by their first lines: run by a test below."""
NOTEBOOKS = ["tutorial", "commands", "notebooks/choosing-epsilon", "notebooks/daily"]


def blocks(page: Path, language: str = "python") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_every_block_of_python_is_run() -> None:
    apart = {}
    for page in PAGES:
        first = [block.split("\n")[0] for block in blocks(page) if ">>> " not in block]
        if first:
            apart[str(page.relative_to(ROOT))] = first
    assert apart == HERE


def test_every_notebook_is_run_by_the_build() -> None:
    pages = {
        str(page.relative_to(ROOT / "docs").with_suffix("")) for page in PAGES if "{code-cell}" in page.read_text()
    }
    assert pages == set(NOTEBOOKS)
    for name in NOTEBOOKS:
        assert (ROOT / "docs" / f"{name}.md").read_text().startswith("---\nfile_format: mystnb\n"), name
    settings = (ROOT / "docs" / "conf.py").read_text()
    assert 'nb_execution_mode = "force"' in settings
    assert "nb_execution_raise_on_error = True" in settings
    assert '"abort_on_example_error": True' in settings
    assert "make docs" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.slow
def test_a_method_of_ones_own_is_compared(tmp_path: Path) -> None:
    for block in (block for block in blocks(ROOT / "docs" / "evaluation.md") if ">>> " not in block):
        name = block.split("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(block)
    done = subprocess.run([sys.executable, "compare.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Mine" in (tmp_path / done.stdout.strip()).read_text()


@pytest.mark.slow
def test_gdal_opens_a_service_as_the_page_says(tmp_path: Path) -> None:
    number = len(Served(tmp_path).release(300).sample())
    (block,) = blocks(ROOT / "docs" / "ogc.md")
    with listening(tmp_path) as address:
        code = block.replace("http://127.0.0.1:8731", address) + f"\nassert len(points) == {number}\n"
        subprocess.run(
            [sys.executable, "-c", code], check=True, cwd=tmp_path, env=os.environ | {"PYTHONWARNINGS": "error"}
        )


def test_every_block_of_configuration_can_be_read(tmp_path: Path) -> None:
    """All are TOML; those that are whole configurations are taken as such."""
    whole = 0
    for page in PAGES:
        for block in blocks(page, "toml"):
            sections = tomllib.loads(block)
            if not {"input", "ticks", "domain", "privacy", "output"} <= set(sections):
                continue
            (tmp_path / "stream.toml").write_text(block, encoding="utf-8")
            load_config(tmp_path / "stream.toml")
            whole += 1
    assert whole >= 3


def test_the_reference_has_every_public_name() -> None:
    listed = (ROOT / "docs" / "api.md").read_text()
    names = {name for name in phd.__all__ if not isinstance(getattr(phd, name), str | ModuleType)}
    errors = {f"errors.{name}" for name in phd.errors.__all__ if isinstance(getattr(phd.errors, name), type)}
    for name in names | errors:
        assert re.search(rf"^   {re.escape(name)}$", listed, re.MULTILINE), name


def test_every_command_that_pages_show_is_one() -> None:
    """Each ``phdstream`` line of a block of shell is parsed: its subcommand and its options are there."""
    shown = set()
    for page in PAGES:
        for line in "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if not words or words[0] != "phdstream":
                continue
            words = words[1 : words.index(">") if ">" in words else None]
            parsed = CliRunner().invoke(command_line, [*words, "--help"])
            assert parsed.exit_code == 0, f"{page.name}: {line}: {parsed.output}"
            shown.add(words[0])
    assert shown >= {"account", "audit", "check", "demo", "doctor", "evaluate", "plan", "report", "run", "serve"}
