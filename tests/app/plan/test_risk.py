"""ε as a risk: the bound is the definition's, and is attained by randomised response."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phdstream.app.plan.risk import DEPLOYMENTS, risk_lines, surest


@given(st.floats(0.001, 0.999), st.floats(0, 20))
def test_it_is_bayes_rule_for_randomised_response(belief: float, epsilon: float) -> None:
    """A truthful bit is told with odds e^ε: who hears "yes" believes exactly the bound."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    after = belief * truth / (belief * truth + (1 - belief) * (1 - truth))
    assert surest(belief, epsilon) == pytest.approx(after)
    assert belief <= surest(belief, epsilon) + 1e-12 <= 1 + 2e-12


def test_a_line_for_each_epsilon() -> None:
    lines = risk_lines([0.1, 1.0])
    assert len(lines) == 3
    assert "73.1%" in lines[2]
    assert len(DEPLOYMENTS) >= 4
