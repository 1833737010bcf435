"""Planted bugs: each still has its place, and a few are seen end to end. All are tried by `phdstream audit --mutate`,
and `python -m tests.planted_bugs` runs the tests that are to see them.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import phdstream
from phdstream.app.audit.command import checks_of
from phdstream.app.audit.mutating import killed
from phdstream.audit.finding import Effort
from phdstream.audit.mutants import Mutant, all_mutants, chosen, planted
from phdstream.errors import InputError

PACKAGE = Path(phdstream.__file__).parent
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("mutant", all_mutants(), ids=lambda mutant: mutant.name)
def test_each_has_its_place_and_is_python(mutant: Mutant) -> None:
    source = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    changed = mutant.apply(source)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    assert mutant.check in {check.name for check in checks_of()}
    assert mutant.says.endswith(".")
    assert all((ROOT / name.split("::")[0]).exists() for name in mutant.tests.split())


def test_there_are_enough_in_every_part() -> None:
    parts = Counter(mutant.part for mutant in all_mutants())
    assert parts.total() >= 25
    wanted = {"reader", "domain", "user ids", "bounding", "budget", "ledger", "noise", "sampler", "divisible noise"}
    wanted |= {"tracking", "selection", "counters", "window", "resume", "release", "run", "durable", "release folder"}
    assert parts.keys() >= wanted | {"inputs", "service", "metrics"}
    assert len({mutant.check for mutant in all_mutants()}) >= 7


def test_a_mutant_without_its_place_says_so() -> None:
    with pytest.raises(InputError, match="is not there once"):
        chosen(["late-rows"])[0].apply("another file\n")
    with pytest.raises(InputError, match="did you mean 'late-rows'"):
        chosen(["late-row"])


def test_the_copy_is_used_in_place_of_the_package_and_nothing_else_is_changed() -> None:
    (mutant,) = chosen(["ledger-lenient"])
    before = (PACKAGE / mutant.file).read_bytes()
    with planted(mutant) as folder:
        command = [sys.executable, "-c", "import phdstream; print(phdstream.__file__)"]
        env = os.environ | {"PYTHONPATH": str(folder)}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert Path(done.stdout.strip()).parent.parent == folder
    assert (PACKAGE / mutant.file).read_bytes() == before
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ledger-lenient", "due-by-true-count", "twice-the-budget", "same-noise-twice"])
def test_the_audit_sees_a_few_at_a_small_size(name: str) -> None:
    outcome = killed(chosen([name])[0], Effort(0.1))
    assert outcome.caught
    assert outcome.by == outcome.mutant.check
    assert "killed by" in outcome.line
