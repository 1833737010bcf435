"""Results of two versions of the code are never shown together: they are refused, by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from benchmarks.reproduction.activations import activation_code
from benchmarks.reproduction.counter_comparison import counter_code
from benchmarks.reproduction.methods import paper_methods
from phdstream.domains import Box, Domain
from phdstream.domains.network import Network
from phdstream.domains.region import Region
from phdstream.errors import InputError
from phdstream.evaluation.trials import method_code

__all__ = ["out_of_date", "refuse_mixed"]

KINDS: dict[str, type[Domain]] = {"box": Box, "region": Region, "network": Network}


def _places(rows: Iterable[Mapping[str, str]], where: str) -> dict[tuple[str, str], dict[str, set[str]]]:
    """Return, for each method and kind of domain, the data sets of each code that made results; "" is not known."""
    found: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        code = row.get("code", "")
        found[row["method"], code.partition(":")[0]][code].add(row[where])
    return found


def refuse_mixed(rows: Iterable[Mapping[str, str]], where: str = "data") -> None:
    """Refuse results of one method, on one kind of domain, that different code made; say what to run again."""
    for (method, kind), codes in _places(rows, where).items():
        if len(codes) > 1:
            now = _code_now(method, kind)
            old = sorted({place for code, places in codes.items() if code != now for place in places})
            raise InputError(
                f"results of {method} on a {kind} were made by {len(codes)} versions of the code, which cannot be "
                f"compared. Run again: {', '.join(old)}."
            )


def out_of_date(rows: Iterable[Mapping[str, str]], where: str = "data") -> dict[str, set[str]]:
    """Return the methods whose results are not of the code that is here, and on which data."""
    stale: dict[str, set[str]] = defaultdict(set)
    for (method, kind), codes in _places(rows, where).items():
        for code, places in codes.items():
            if code != _code_now(method, kind):
                stale[method] |= places
    return dict(stale)


def _code_now(method: str, kind: str) -> str | None:
    """Return the code that would make a method's results; activations and counters are no methods, but made too."""
    if method == "counters":
        return counter_code()
    if kind not in KINDS:
        return None
    if method == "activations":
        return activation_code(KINDS[kind])
    known = paper_methods()
    return method_code(known[method], KINDS[kind]) if method in known else None
