"""Guard: no floating-point number between an exact count and its noise.

Exact counts are handled in the modules of ``PATH`` and nowhere else: asking for them anywhere else is a finding. In
these modules every function is looked through for anything that makes a floating-point number: a literal, a true
division, a conversion, a function of `math` or a NumPy function that returns floats. A function that computes with
*public* numbers only stands in ``PUBLIC``, with what makes them public; whoever adds a function there has to say why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.guards.sources import Finding, Sources, dotted, functions, tree_of

PATH = (
    "phdstream.streams.private_codes",
    "phdstream.streams.code_counts",
    "phdstream.streams.engine",
    "phdstream.streams.tracking.mechanism.mechanism",
    "phdstream.streams.tracking.pieces",
    "phdstream.streams.paper.mechanism",
    "phdstream.streams.paper.selective_counting",
    "phdstream.streams.paper.counters.bank",
    "phdstream.streams.paper.counters.binary",
    "phdstream.streams.paper.counters.counter",
    "phdstream.streams.paper.counters.levels",
    "phdstream.domains.prefixes",
    "phdstream.privacy.divisible_noise",
    "phdstream.privacy.noise",
    "phdstream.privacy.laplace",
    "phdstream.privacy.exponentials",
)
"""From exact counts to noisy ones."""

_ACCURACY = "how accurate a counter is: of its ε and how many values it took, both public"
PUBLIC = {
    "phdstream.privacy.laplace:discrete_laplace": "the scale, a public float, whose exact value is taken as a fraction",
    "phdstream.privacy.laplace:_digits": "divides fractions, which is exact",
    "phdstream.privacy.exponentials:exp_bounds": "halves a fraction, which is exact",
    "phdstream.privacy.noise:Simulation.__init__": "seeded noise for experiments, which promises nothing",
    "phdstream.privacy.noise:Simulation.add": "seeded noise for experiments, which promises nothing",
    **{
        f"phdstream.streams.paper.counters.{where}": _ACCURACY
        for where in (
            "counter:Counter.__post_init__",
            "counter:Simple.privacy_loss",
            "counter:Block.privacy_loss",
            "counter:total_deviation",
            "counter:_distribution_of_absolute_sum",
            "counter:_chernoff",
            "binary:BinaryTree.variance",
            "binary:BinaryTree.privacy_loss",
            "levels:ByLevel.scales",
        )
    },
}
"""Functions that may compute in floating point, for they are given no private number."""

_EXACT = ("spend", "within")
_ELSEWHERE = {
    "phdstream.release": "what is below streams cannot import exact counts; ``within`` is something else there",
    "phdstream.domains": "the same",
    "phdstream.audit": "audits what noise is given, and releases nothing",
    "phdstream.engines.spark.counting": "Spark's counts, compared with NumPy's to the bit",
    "phdstream.baselines": "the baselines to be beaten; those that promise nothing say so",
    "phdstream.evaluation": "compares releases with the truth, and says that its output is private",
}
"""Rooms that hold exact numbers of their own and release nothing through a mechanism."""

_FLOATS = ("float", "np.float64", "np.float32", "np.double", "np.floating", "complex")
_NUMPY = (
    "mean", "average", "median", "std", "var", "sqrt", "exp", "expm1", "log", "log1p", "log2", "divide", "true_divide",
    "linspace", "reciprocal", "power", "nan", "inf", "random", "fft", "percentile", "quantile", "interp",
)  # fmt: skip
_FUNCTIONS = tuple(f"np.{name}" for name in _NUMPY)
_METHODS = ("mean", "std", "var")


def findings(sources: Sources) -> list[Finding]:
    """Return every float on the way from counts to noise, and every place elsewhere that asks for exact counts."""
    found = []
    for module in PATH:
        for name, function, _ in functions(tree_of(sources[module])):
            found += [Finding(module, name, line, what) for line, what in _floats(function)]
    for module, text in sources.items():
        if module not in PATH and not any(module.startswith(room) for room in _ELSEWHERE):
            for name, function, _ in functions(tree_of(text)):
                found += [Finding(module, name, line, "asks for exact counts") for line in _asks(function)]
    return sorted(set(found))


def _floats(function: ast.AST) -> Iterator[tuple[int, str]]:
    skipped = {id(part) for node in ast.walk(function) for part in _annotations(node)}
    for node in ast.walk(function):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
            yield node.lineno, f"the number {node.value!r}"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield node.lineno, "a true division"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
            yield node.lineno, "a power, which is a float for a negative exponent"
        elif isinstance(node, ast.Name | ast.Attribute):
            name = dotted(node)
            if name in (*_FLOATS, *_FUNCTIONS) or name.startswith("math."):
                yield node.lineno, f"uses {name}"
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _METHODS:
            yield node.lineno, f"calls {ast.unparse(node.func)}()"


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of annotations: they compute nothing."""
    notes = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    for note in notes:
        if note is not None:
            yield from ast.walk(note)


def _asks(function: ast.AST) -> Iterator[int]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EXACT:
            yield node.lineno
