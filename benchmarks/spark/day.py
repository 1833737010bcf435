"""A day of a billion events, by the fitted sums: cores, bytes and the driver, for some lengths of a tick."""

from __future__ import annotations

from benchmarks.reproduction.page import markdown
from benchmarks.spark.model import driver_table, fitted, known_users, predicted, rows_of, unseen

__all__ = ["day_parts"]

EVENTS, NODES, SUBSCRIBERS = 1e9, 1e6, 50e6
"""Events of the day; nodes asked for in a tick, as many as a stream remembers unless told; a large operator's users."""
LENGTHS = {"10 minutes": 144, "an hour": 24, "a day": 1}
_PER_PARTITION = 2e6
"""Events of a partition: some 50 MB of codes and numbers, and of what is sorted to get there."""


def day_parts() -> dict[str, str]:
    """Return the table, and the numbers that the text names."""
    head = (
        "a tick | its million events | partitions | core seconds a tick | core hours a day | MB shuffled a tick | "
        "MB a partition | MB to the driver | cores that are done in a tenth of the tick"
    )
    lines = [_line(said, ticks) for said, ticks in LENGTHS.items()]
    return {"day": markdown(head.split(" | "), lines)} | _words()


def _words() -> dict[str, str]:
    """Return the numbers that the text names."""
    rows = [row for row in rows_of() if row.engine == "spark" and not row.users]
    most = max(row.setting["rows"] for row in rows if row.experiment == "size")
    (test,) = {row.setting["rows"] for row in rows if row.experiment == "unseen"}
    fixed = sum(found.of.get("fixed", 0.0) for (_, what), found in fitted().items() if what == "cpu_s")
    last = driver_table()[-1]
    each, size = (float(last[name]) / float(last["points"]) for name in ("publish_cpu_s", "publish_bytes"))
    hour = EVENTS / LENGTHS["an hour"]
    none, some = (each[1].took["shuffle_bytes"] for each in (known_users()[0], known_users()[-1]))
    known, _, user = known_users()[-1]
    return {
        "times": f"{_times():.1f}", "local times": f"{_each('local', 'unseen') / _each('local', 'size'):.1f}",
        "operator tick": f"{hour * _each('spark', 'size', users=True) + user * SUBSCRIBERS:,.0f}",
        "user cpu": f"{user * 1e6:.1f}", "user bytes": f"{(some - none) / known:.0f}",
        "users tick": f"{user * SUBSCRIBERS:,.0f}", "users day": f"{user * SUBSCRIBERS * 24 / 3600:.1f}",
        "local day": _local(), "fixed": f"{fixed:.0f}", "largest": f"{most:,.0f}", "test": f"{test:,.0f}",
        "factor": f"{hour / most:.0f}", "day factor": f"{EVENTS / most:.0f}", "point cpu": f"{each * 1e6:.1f}",
        "point bytes": f"{size:.0f}", "hour file": f"{hour * size / 1e9:.1f}", "hour cpu": f"{hour * each:.0f}",
        "day file": f"{EVENTS * size / 1e9:.0f}", "day cpu": f"{EVENTS * each / 60:.0f}",
    }  # fmt: skip


def _line(said: str, ticks: int) -> list[str]:
    rows = EVENTS / ticks
    partitions = max(8.0, rows / _PER_PARTITION)
    took = predicted(rows, partitions, NODES)
    cpu = sum(found for (_, what), found in took.items() if what == "cpu_s")
    shuffled = (took["hold", "shuffle_bytes"] + took["count", "shuffle_bytes"]) / 1e6
    numbers = [f"{rows / 1e6:,.1f}", f"{partitions:.0f}", f"{cpu:,.0f}", f"{cpu * ticks / 3600:.1f}"]
    numbers += [f"{shuffled:,.0f}", f"{shuffled / partitions:.0f}", f"{took['count', 'result_bytes'] / 1e6:.0f}"]
    return [said, *numbers, f"{cpu / (86_400 / ticks / 10):.1f}"]


def _local() -> str:
    """Return for how many minutes one core of one machine counts a billion events with the local engine."""
    return f"{_each('local', 'unseen') * EVENTS / 60:.0f}"


def _each(engine: str, experiment: str, users: bool = False) -> float:
    """Return what an event takes of a core, all steps together, at an experiment's largest size."""
    found = [row for row in rows_of() if (row.engine, row.experiment, row.users) == (engine, experiment, users)]
    rows = max(row.setting["rows"] for row in found)
    return sum(row.took["cpu_s"] for row in found if row.setting["rows"] == rows) / rows


def _times() -> float:
    """Return how many times what was predicted the unseen size took of processors."""
    (found,) = (each for each in unseen() if each[0] == "all three")
    return found[3] / found[2]
