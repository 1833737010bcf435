"""docs/scale.md: its template, filled from docs/results/scale.csv and scale-driver.csv. No measured number is typed."""

from __future__ import annotations

from benchmarks.reproduction.page import markdown
from benchmarks.reproduction.results import DOCS
from benchmarks.spark.day import day_parts
from benchmarks.spark.model import Row, driver_table, fitted, known_users, rows_of, unseen

__all__ = ["PAGE", "page"]

PAGE, TEMPLATE = DOCS / "scale.md", DOCS / "scale.template.md"
_STEPS = ("place", "hold", "count")
_MICRO, _MB = 1e6, 1e6


def page() -> str:
    """Return docs/scale.md."""
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in (_parts() | day_parts()).items():
        text = text.replace("{{" + name + "}}", part)
    return text


def _parts() -> dict[str, str]:
    return {
        "machine": driver_table()[0]["machine"],
        "turns": f"{max(row.turns for row in rows_of() if row.experiment == 'size')}",
        "ratios": _ratios(),
        "steps": _steps(),
        "partitions": _partitions(),
        "nodes": _nodes(),
        "users": _users(),
        "topic": _topic(),
        "driver": _driver(),
        "sums": _sums(),
        "errors": _errors(),
    }


def _of(experiment: str, engine: str = "spark", users: bool = False) -> dict[tuple[float, float, float, str], Row]:
    found = [row for row in rows_of() if (row.experiment, row.engine, row.users) == (experiment, engine, users)]
    return {(row.setting["rows"], row.setting["partitions"], row.setting["nodes"], row.step): row for row in found}


def _ratios() -> str:
    lines = []
    for users in (False, True):
        for experiment in ("size", "unseen"):
            both = [_of(experiment, engine, users) for engine in ("spark", "local")]
            for rows in dict.fromkeys(key[0] for key in both[0]):
                cpu, wall = (
                    [sum(r.took[what] for key, r in some.items() if key[0] == rows) for some in both]
                    for what in ("cpu_s", "wall_s")
                )
                unit = "user" if users else "event"
                each = [f"{seconds / rows * _MICRO:.2f}" for seconds in cpu]
                lines.append([f"{rows:,.0f}", unit, *each, f"{cpu[0] / cpu[1]:.0f}", f"{wall[0] / wall[1]:.0f}"])
    head = "events | unit | Spark, µs of a core each | local, µs of a core each | ratio a core | ratio by the clock"
    return markdown(head.split(" | "), lines)


def _steps() -> str:
    lines = []
    for users in (False, True):
        found = _of("size", users=users)
        rows = max(key[0] for key in found)
        for key, row in found.items():
            if key[0] == rows:
                took = row.took
                each = [took["cpu_s"] * _MICRO, took["shuffle_bytes"], took["written_bytes"]]
                numbers = [f"{number / rows:.2f}" for number in each]
                lines.append([f"{row.step}, unit {'user' if users else 'event'}", *numbers, f"{took['tasks']:.0f}",
                              f"{took['result_bytes'] / 1000:.0f}"])  # fmt: skip
    head = "step | µs of a core an event | bytes shuffled an event | bytes written an event | tasks | kB to the driver"
    return markdown(head.split(" | "), lines)


def _partitions() -> str:
    found = _of("partitions") | {key: row for key, row in _of("size").items() if key[0] == 4 * _least()}
    lines = []
    for partitions in sorted({key[1] for key in found}):
        steps = {row.step: row for key, row in found.items() if key[1] == partitions}
        cpu = [f"{steps[step].took['cpu_s']:.1f}" for step in _STEPS]
        shuffled = steps["hold"].took["shuffle_bytes"]
        counted = steps["count"].took
        lines.append(
            [f"{partitions:.0f}", *cpu, f"{shuffled / _MB:.1f}", f"{shuffled / partitions / _MB:.2f}",
             f"{steps['hold'].took['remote_bytes'] / shuffled:.0%}", f"{counted['shuffle_bytes'] / _MB:.2f}",
             f"{counted['result_bytes'] / _MB:.2f}"]
        )  # fmt: skip
    head = (
        "partitions | place, core s | hold, core s | count, core s | MB shuffled to hold | MB a partition | "
        "of it between executors | MB shuffled to count | MB to the driver"
    )
    return markdown(head.split(" | "), lines)


def _least() -> float:
    return min(key[0] for key in _of("size"))


def _nodes() -> str:
    same = {key: row for key, row in _of("size").items() if key[0] == 8 * _least() and key[3] == "count"}
    found, lines = _of("nodes") | same, []
    for (_, _, nodes, _), row in sorted(found.items(), key=lambda each: each[0][2]):
        took = row.took
        each = f"{took['result_bytes'] / nodes:.0f}" if nodes > 1000 else ""
        lines.append([f"{nodes:,.0f}", f"{took['cpu_s']:.2f}", f"{took['shuffle_bytes'] / _MB:.2f}",
                      f"{took['result_bytes'] / _MB:.2f}", each])  # fmt: skip
    return markdown(["nodes asked", "core s", "MB shuffled", "MB to the driver", "bytes a node"], lines)


def _users() -> str:
    lines = []
    for known, row, more in known_users():
        mega = [f"{row.took[what] / _MB:.0f}" for what in ("shuffle_bytes", "written_bytes")]
        lines.append([f"{known:,.0f}", f"{row.took['cpu_s']:.1f}", f"{more * _MICRO:.1f}" if known else "", *mega])
    head = "users known before | hold, core s | µs of a core a known user | MB shuffled | MB written"
    return markdown(head.split(" | "), lines)


def _topic() -> str:
    found = [row for row in rows_of() if row.experiment == "topic"]
    spark, local = (next(row for row in found if row.engine == engine) for engine in ("spark", "local"))
    lines = []
    for row in (spark, local):
        per, times = row.setting["rows"] / row.took["cpu_s"], row.took["cpu_s"] / local.took["cpu_s"]
        lines.append([row.engine, f"{row.setting['rows']:,.0f}", f"{per:,.0f}", f"{times:.1f}",
                      f"{row.took['wall_s'] / local.took['wall_s']:.1f}"])  # fmt: skip
    return markdown(["engine", "messages", "a second and core", "ratio a core", "ratio by the clock"], lines)


def _driver() -> str:
    lines = []
    for row in driver_table():
        peak, asked, points = float(row["peak_bytes"]), float(row["asked"]), float(row["points"])
        lines.append(
            [f"{float(row['rows']):,.0f}", f"{int(row['nodes']):,}", row["questions"], f"{asked:,.0f}", row["cpu_s"],
             f"{peak / _MB:.0f}", f"{peak / float(row['nodes']):,.0f}", f"{points:,.0f}",
             f"{float(row['publish_cpu_s']) / points * _MICRO:.2f}", f"{float(row['publish_bytes']) / points:.0f}"]
        )  # fmt: skip
    head = (
        "events of the tick | nodes remembered | questions | nodes asked | core s | MB at most | bytes a node | "
        "points published | µs of a core a point | bytes a point"
    )
    return markdown(head.split(" | "), lines)


_SAID = {"fixed": "", "rows": " · events", "partitions": " · partitions", "nodes": " · nodes"}
_UNITS = {"cpu_s": "core seconds", "shuffle_bytes": "bytes shuffled", "result_bytes": "bytes to the driver"}


def _sums() -> str:
    lines = []
    for (step, what), found in fitted().items():
        terms = [f"{each:.3g}{_SAID[part]}" for part, each in found.of.items()]
        lines.append([step, _UNITS[what], " + ".join(terms)])
    return markdown(["step", "what", "a tick takes"], lines)


def _errors() -> str:
    lines = [
        [step, _UNITS[what], f"{wanted:,.3g}" if wanted < 1e4 else f"{wanted:,.0f}",
         f"{found:,.3g}" if found < 1e4 else f"{found:,.0f}", f"{wanted / found - 1:+.0%}"]
        for step, what, wanted, found in unseen()
    ]  # fmt: skip
    return markdown(["step", "what", "predicted", "measured", "error"], lines)
