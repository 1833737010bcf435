"""For all tests: Hypothesis's settings, and what may be left out.

Hypothesis tries a few examples by default, many with ``PHDSTREAM_THOROUGH=1``. A test that the machine cannot run is
skipped and says why; with ``PHDSTREAM_NOTHING_LEFT_OUT=1``, as in CI, that fails the run.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings

from tests.thorough import THOROUGH

settings.register_profile("brief", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile("thorough" if THOROUGH else "brief")

NOT_TO_BE_HAD = {
    "tests/service/api/test_ogc_suite.py::test_the_official_suite": "its jar is in no registry of packages",
}
"""Tests that CI leaves out, too, and why it cannot be helped."""


def _left_out(config: pytest.Config) -> list[str]:
    """Return what was skipped and could have run, as far as the process that collects all reports knows."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or os.environ.get("PHDSTREAM_NOTHING_LEFT_OUT") != "1":
        return []
    return sorted({report.nodeid for report in reporter.stats.get("skipped", [])} - NOT_TO_BE_HAD.keys())


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _left_out(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for name in _left_out(config):
        terminalreporter.write_line(f"LEFT OUT, and nothing may be: {name}", red=True)
