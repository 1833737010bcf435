"""The border between mechanisms and models: types refuse private events, and import contracts refuse their modules."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
SNIPPET = """
from fractions import Fraction

import numpy as np

from phdstream.streams.paper.model.nodes import NodeStore
from phdstream.streams.private_codes import ExactCounts, PrivateCodes
from phdstream.streams.tracking.model.least_squares import NoisyCounts, weighted_least_squares
from phdstream.streams.tracking.model.open_block import OpenBlock
from phdstream.streams.tracking.model.refinement import Refinement

noisy = NoisyCounts(np.array([1]), np.array([3.0]), np.array([2.0]))
private = PrivateCodes(4, Fraction(1), np.array([1]))


def right(block: OpenBlock) -> None:
    weighted_least_squares(noisy)
    block.add_zones(np.array([3]))


def wrong(block: OpenBlock, plan: Refinement, store: NodeStore, exact: ExactCounts) -> None:
    weighted_least_squares(private)  # wrong
    block.add_zones(private)  # wrong
    block.add_tick(private)  # wrong
    plan.outcome(private)  # wrong
    plan.outcome(exact)  # wrong
    store.record(np.array([1]), exact, np.array([1]))  # wrong
    private.within(np.array([1]))  # wrong
    len(private)  # wrong
"""


@pytest.mark.slow
def test_a_model_cannot_be_given_private_events(tmp_path: Path) -> None:
    """Every line that tries is an error of type, and no other line is."""
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET)
    options = ["--strict", "--follow-imports=silent", "--no-error-summary", f"--cache-dir={tmp_path / 'cache'}"]
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(snippet)],
        capture_output=True,
        text=True,
        cwd=PROJECT / "src",  # where the modules are found
        check=False,
    )
    assert found.stderr == ""
    errors = [int(line.split(":")[1]) for line in found.stdout.splitlines() if ": error:" in line]
    wrong = [number for number, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# wrong")]
    assert sorted(set(errors)) == wrong, found.stdout


def contracts() -> dict[str, dict[str, Any]]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    return {contract["name"]: contract for contract in project["tool"]["importlinter"]["contracts"]}


def test_a_contract_keeps_private_events_from_the_models() -> None:
    contract = contracts()["the model never sees private events"]
    assert contract["type"] == "forbidden"
    assert not contract.get("allow_indirect_imports", False)
    assert {"phdstream.streams.tracking.model", "phdstream.streams.paper.model"} <= set(contract["source_modules"])
    private = {"phdstream.streams.private_codes", "phdstream.streams.code_counts", "phdstream.streams.intake"}
    assert private <= set(contract["forbidden_modules"])


def test_a_contract_keeps_all_but_mechanisms_from_drawing_noise() -> None:
    sources: set[str] = set()
    for name, contract in contracts().items():
        if name.startswith("only mechanisms draw noise"):
            noise = {"phdstream.privacy.noise", "phdstream.privacy.divisible_noise", "phdstream.privacy.laplace"}
            assert noise <= set(contract["forbidden_modules"])
            sources |= set(contract["source_modules"])
    assert {"phdstream.streams.tracking.model", "phdstream.streams.paper.model", "phdstream.release"} <= sources


def test_nothing_of_a_model_takes_noise_or_private_events_by_name() -> None:
    """What types and imports cannot see: a model that is handed noise, or reaches into the private parts of events."""
    for model in ("tracking/model", "paper/model"):
        for module in (PROJECT / "src" / "phdstream" / "streams" / model).glob("*.py"):
            text = module.read_text()
            for word in ("PrivateCodes", "ExactCounts", "TickEvents", "ExactNoise", "Simulation", ".spend("):
                assert word not in text, (module.name, word)
