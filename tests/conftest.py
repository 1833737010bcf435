"""Hypothesis's settings for all tests: a few examples by default, many with ``PHDSTREAM_THOROUGH=1``."""

from __future__ import annotations

from hypothesis import settings

from tests.thorough import THOROUGH

settings.register_profile("brief", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile("thorough" if THOROUGH else "brief")
