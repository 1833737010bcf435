"""Places' codes in SQL: the very steps of `Box`, `Globe` and `Region` in IEEE arithmetic, so to the bit the same.

No row is seen by Python, but for those of a `Region` that lie in a cell of its coarse grid which a boundary cuts: these
go through the polygons in Arrow batches. Columns are kept from being null, for which Spark makes much faster code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from phdstream.domains import Box, Domain, domain_from_dict
from phdstream.domains.globe import Globe
from phdstream.domains.globe.s2 import CHUNK, TO_CURVE, chunks_of
from phdstream.domains.region import Region
from phdstream.domains.region.clipping import CUT, WHOLE
from phdstream.domains.shapes.equal_area import ACROSS, ECCENTRICITY, SERIES, UP
from phdstream.domains.sines import COSINE, QUARTER, RADIAN, SINE, polynomial

__all__ = ["domain_at_hand", "in_sql", "with_codes"]


def in_sql(domain: Domain) -> bool:
    """Whether a domain's codes can be said in SQL: of a region if its map can be."""
    if isinstance(domain, Region):
        return domain.projection.identity or domain.projection.from_degrees
    return type(domain) in (Box, Globe)


def with_codes(rows: Any, domain: Domain) -> Any:
    """Return the rows of a frame that lie in a domain, and their ``code``; coordinates are ``x0``, ``x1``, ...

    Coordinates may be any numbers, or NaN, but not null.
    """
    if isinstance(domain, Globe):
        return _globe(rows, domain)
    return _region(rows, domain) if isinstance(domain, Region) else _box(rows, domain, "x")


def _box(rows: Any, box: Any, x: str) -> Any:
    """Take the steps of `Box.encode` on coordinates ``x0``, ``x1``, ... if ``x`` is their letter."""
    from pyspark.sql import functions as sql

    grid = box.grid()
    for axis, (low, high, _, _) in enumerate(grid):
        rows = _kept(rows, (sql.col(f"{x}{axis}") >= low) & (sql.col(f"{x}{axis}") <= high))
    for axis, (low, _, step, halvings) in enumerate(grid):
        at, last = sql.col(f"{x}{axis}"), float((1 << halvings) - 1)
        rows = rows.withColumn("k", sql.least(sql.floor(_over(at - low, step)).cast("double"), sql.lit(last)))
        rows = rows.withColumn("k", sql.col("k") - (at < low + sql.col("k") * step).cast("double"))
        rows = rows.withColumn("k", sql.col("k") + (at >= low + (sql.col("k") + 1) * step).cast("double"))
        rows = rows.withColumn(f"k{axis}", sql.least(sql.col("k"), sql.lit(last)).cast("long"))
    code = sql.lit(0).cast("long")
    for axis in range(len(grid)):
        for i, at in box.code_bits(axis):
            bit = sql.shiftright(sql.col(f"k{axis}"), i).bitwiseAND(sql.lit(1))
            code = code.bitwiseOR(sql.shiftleft(bit, at))
    return rows.withColumn("code", code)


def _kept(rows: Any, condition: Any) -> Any:
    """Return the rows for which a condition holds, worked out where it stands.

    Spark would move a plain filter below the steps that its columns are made of, and write all of them out again for
    each time they are used: an expression that grows with the power of the steps. It leaves what it takes for chance in
    its place, such as the number of a partition.
    """
    from pyspark.sql import functions as sql

    holds = condition.cast("int").bitwiseOR(sql.spark_partition_id().bitwiseAND(sql.lit(0)))
    return rows.withColumn("kept", holds).filter("kept = 1").drop("kept")


def _over(x: Any, y: Any) -> Any:
    """Divide by what is never zero: SQL would have the quotient null if it were."""
    from pyspark.sql import functions as sql

    return sql.coalesce(x / y, sql.lit(0.0))


def _sine_and_cosine(rows: Any, degrees: str, sine: str, cosine: str) -> Any:
    """Take the steps of `sine_and_cosine`."""
    from pyspark.sql import functions as sql

    angle, r, z, turn = (sql.col(name) for name in (degrees, "r", "z", "turn"))
    rows = rows.withColumn("quarters", sql.rint(_over(angle, QUARTER)))
    rows = rows.withColumn("r", (angle - sql.col("quarters") * QUARTER) * RADIAN).withColumn("z", r * r)
    rows = rows.withColumns(
        {
            "s": r + r * z * polynomial(SINE, z),
            "c": 1.0 - (0.5 * z - z * z * polynomial(COSINE, z)),
            "turn": sql.col("quarters").cast("int").bitwiseAND(sql.lit(3)),
        }
    )
    odd = turn.bitwiseAND(sql.lit(1)) == 1
    return rows.withColumns(
        {
            sine: sql.when(odd, sql.col("c")).otherwise(sql.col("s")) * _minus_if(turn >= 2),
            cosine: sql.when(odd, sql.col("s")).otherwise(sql.col("c")) * _minus_if((turn == 1) | (turn == 2)),
        }
    )


def _minus_if(condition: Any) -> Any:
    from pyspark.sql import functions as sql

    return sql.when(condition, -1.0).otherwise(1.0)


def _globe(rows: Any, globe: Globe) -> Any:
    """Take the steps of `Globe.encode`: `to_face`, `grid_position`, `codes_of`."""
    from pyspark.sql import functions as sql

    rows = rows.filter((sql.abs("x0") <= 180) & (sql.abs("x1") <= 90))
    rows = _sine_and_cosine(_sine_and_cosine(rows, "x1", "up", "across"), "x0", "north", "east")
    rows = rows.withColumns({"x": sql.col("east") * sql.col("across"), "y": sql.col("north") * sql.col("across")})
    x, y, z = sql.col("x"), sql.col("y"), sql.col("up")
    ax, ay, az = sql.abs(x), sql.abs(y), sql.abs(z)
    rows = rows.withColumn("axis", sql.when((ax > ay) & (ax > az), 0).when((ay >= ax) & (ay > az), 1).otherwise(2))
    axis, along = sql.col("axis"), sql.col("along")
    rows = rows.withColumn("along", sql.when(axis == 0, x).when(axis == 1, y).otherwise(z))
    rows = rows.withColumns(
        {
            "p": _over(sql.when(axis == 0, y).otherwise(-x), along),
            "q": _over(sql.when(axis == 2, -y).otherwise(z), along),
            "face": (axis + sql.when(along < 0, 3).otherwise(0)).cast("long"),
        }
    )
    for name, ahead, behind in (("i", "p", "q"), ("j", "q", "p")):
        u = sql.when(along < 0, sql.col(behind)).otherwise(sql.col(ahead))
        rows = rows.withColumn("u", u).withColumn("root", 0.5 * sql.sqrt(1 + 3 * sql.abs("u")))
        share = sql.when(sql.col("u") >= 0, sql.col("root")).otherwise(1 - sql.col("root"))
        rows = rows.withColumn(name, _grid_position(share, globe.depth - 1))
    return _along_the_curve(rows, globe.depth - 1)


def _grid_position(share: Any, level: int) -> Any:
    from pyspark.sql import functions as sql

    position = sql.floor(share * float(1 << level))
    return sql.greatest(sql.lit(0), sql.least(position, sql.lit((1 << level) - 1))).cast("long")


def _along_the_curve(rows: Any, level: int) -> Any:
    """Take the steps of `codes_of` on ``face``, ``i`` and ``j``."""
    from pyspark.sql import functions as sql

    table, mask = sql.array(*(sql.lit(int(entry)) for entry in TO_CURVE)), sql.lit((1 << CHUNK) - 1)
    turned = sql.col("face").bitwiseXOR(sql.lit(level)).bitwiseAND(sql.lit(1))
    rows = rows.withColumns({"turned": turned, "position": sql.lit(0).cast("long")})
    for k in chunks_of(level):
        i, j = (sql.shiftright(name, CHUNK * k).bitwiseAND(mask) for name in ("i", "j"))
        entry = sql.shiftleft(sql.shiftleft(i, CHUNK).bitwiseOR(j), 2).bitwiseOR(sql.col("turned"))
        rows = rows.withColumn("found", sql.coalesce(sql.get(table, entry.cast("int")).cast("long"), sql.lit(0)))
        position = sql.shiftleft("position", 2 * CHUNK).bitwiseOR(sql.shiftright("found", 2))
        rows = rows.withColumns({"position": position, "turned": sql.col("found").bitwiseAND(sql.lit(3))})
    return rows.withColumn("code", sql.shiftleft("face", 2 * level).bitwiseOR(sql.col("position")))


def _region(rows: Any, region: Region) -> Any:
    """Take the steps of `Region.encode`; only rows in cells that are cut are asked of the polygons."""
    from pyspark.sql import functions as sql

    given = rows.columns
    if region.projection.from_degrees:
        rows = _sine_and_cosine(rows.filter(sql.abs("x1") <= 90), "x1", "sine", "cosine")
        rows = rows.withColumn("z", ECCENTRICITY * (sql.col("sine") * sql.col("sine")))
        up = UP * sql.col("sine") * (_over(sql.lit(1.0), 1.0 - sql.col("z")) + polynomial(SERIES, sql.col("z")))
        rows = rows.withColumns({"m0": ACROSS * sql.col("x0"), "m1": up})
    rows = _box(rows, region.rectangles, "m" if region.projection.from_degrees else "x").select(*given, "code")
    bits, kinds = region.coarse_kinds()
    coarse = sql.shiftright("code", region.total_bits - bits).cast("int") + 1
    rows = rows.withColumn("kind", sql.substring(sql.lit(kinds), coarse, sql.lit(1)))
    whole, cut = (_kept(rows, sql.col("kind") == sql.lit(bytes([kind]))).drop("kind") for kind in (WHOLE, CUT))
    return whole.unionByName(cut.mapInArrow(_only_inside(region), cut.schema))


def _only_inside(domain: Domain) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what keeps the rows that lie in a domain, in a worker's Python."""
    description, names = json.dumps(domain.to_dict()), [f"x{axis}" for axis in range(domain.dimension)]

    def kept(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place = domain_at_hand(description)
        for batch in batches:
            points = np.stack([batch.column(name).to_numpy() for name in names], axis=1)
            yield batch.filter(pa.array(place.encode(points)[1]))

    return kept


@lru_cache(maxsize=4)
def domain_at_hand(description: str) -> Domain:
    """Return a domain, made once in each worker: what it works out of nodes it has met is kept."""
    return domain_from_dict(json.loads(description))
