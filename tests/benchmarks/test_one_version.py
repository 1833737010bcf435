"""Results of two versions of the code are refused, by name."""

from __future__ import annotations

import pytest
from benchmarks.one_version import out_of_date, refuse_mixed
from benchmarks.reproduction.methods import paper_methods

from phdstream.domains import Box
from phdstream.errors import InputError
from phdstream.evaluation.trials import method_code

NOW = method_code(paper_methods()["phdstream"], Box)


def row(method: str, code: str, data: str) -> dict[str, str]:
    return {"method": method, "code": code, "data": data}


def test_two_versions_of_one_method_are_refused_and_the_old_one_is_to_be_run_again() -> None:
    rows = [row("phdstream", NOW, "circles-a"), row("phdstream", "box:old", "circles-b")]
    with pytest.raises(InputError, match=r"phdstream on a box were made by 2 versions .* Run again: circles-b\.$"):
        refuse_mixed(rows)


def test_other_methods_and_kinds_of_domain_have_other_code() -> None:
    rows = [row("phdstream", NOW, "a"), row("phdstream", "region:1", "b"), row("baseline-1", "box:2", "a")]
    refuse_mixed(rows)


def test_what_is_out_of_date() -> None:
    rows = [row("phdstream", NOW, "a"), row("baseline-1", "box:2", "a"), row("gone", "box:3", "b")]
    assert out_of_date(rows) == {"baseline-1": {"a"}, "gone": {"b"}}


def test_a_row_that_does_not_say_its_code_is_out_of_date() -> None:
    rows = [{"method": "phdstream", "data": "a"}, row("activations", "", "b"), row("counters", "", "c")]
    assert out_of_date(rows) == {"phdstream": {"a"}, "activations": {"b"}, "counters": {"c"}}
