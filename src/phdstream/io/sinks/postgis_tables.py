"""The tables of a PostGIS sink: what they are called, how they are made, and a release as their rows. Public.

``PREFIXstream`` has one row, whose stream this is. ``PREFIXticks`` has a row for each tick that is there, and refers to
it: no other stream's tick can come in. ``PREFIXpoints`` and ``PREFIXcells`` refer to ticks; the views
``PREFIXpoints_latest`` and ``PREFIXcells_latest`` are of the last tick. Where points have two coordinates both have a
column ``geom``; elsewhere (a hierarchy, other dimensions) they have their columns only, and PostGIS is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import shapely
from numpy.typing import NDArray

from phdstream.domains import ROOT, Domain
from phdstream.errors import StateError
from phdstream.io.sinks.protocol import driver
from phdstream.release import Release
from phdstream.release.columns import locations_of, point_columns
from phdstream.release.maps import cell_shapes

__all__ = ["FORMAT", "Tables", "has_geometry", "rows_as_csv"]

FORMAT = 1
_LONGEST = 63
"""Bytes of a name in PostgreSQL, which cuts longer ones short without a word."""
_AT_ONCE = 50_000
_TYPES = {"int8": "smallint", "int64": "bigint", "double": "double precision", "string": "text", "bool": "boolean"}
_OWN = {"id", "tick", "geom"}


@dataclass(frozen=True)
class Tables:
    """The tables of one sink, in a schema and with a prefix, for a domain; ``srid`` is None without geometry."""

    schema: str
    prefix: str
    domain: Domain
    srid: int | None

    def name(self, table: str) -> Any:
        """Return a table's name, quoted."""
        return driver("psycopg.sql", "postgres").Identifier(self.schema, self.prefix + table)

    def columns(self, table: str, rows: pa.Table) -> list[str]:
        """Return the columns that are filled: ``tick``, those of a table of rows, ``geom``."""
        for name in rows.column_names:
            if name in _OWN or len(name.encode()) > _LONGEST or "\0" in name:
                raise StateError(
                    f"a column '{name}' cannot be in the table of {table}: give the domain another name for it "
                    f"(at most {_LONGEST} bytes, and none of {', '.join(sorted(_OWN))})."
                )
        return ["tick", *rows.column_names, *(["geom"] if self.srid is not None else [])]

    def statements(self, release: Release) -> Iterator[Any]:
        """Yield what makes the tables, with the columns that releases like this one have."""
        sql = driver("psycopg.sql", "postgres")
        yield self._fill(
            "CREATE TABLE {stream} (one boolean PRIMARY KEY DEFAULT true CHECK (one), stream text NOT NULL UNIQUE, "
            "format integer NOT NULL, domain jsonb NOT NULL, created timestamptz NOT NULL DEFAULT now())"
        )
        yield self._fill(
            "CREATE TABLE {ticks} (tick bigint PRIMARY KEY CHECK (tick > 0), stream text NOT NULL REFERENCES {stream} "
            "(stream), digest text NOT NULL, epsilon double precision, unit jsonb, total double precision NOT NULL, "
            "points bigint NOT NULL, cells bigint NOT NULL, metadata jsonb NOT NULL, "
            "published timestamptz NOT NULL DEFAULT now())"
        )
        for table, rows in (("points", point_rows(release, slice(0, 0))), ("cells", release.cells())):
            yield from self._data_table(sql, table, rows)

    def _data_table(self, sql: Any, table: str, rows: pa.Table) -> Iterator[Any]:
        self.columns(table, rows)
        typed = [
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_TYPES[str(field.type)]))
            for field in rows.schema
        ]
        if self.srid is not None:
            kind = "Point" if table == "points" else _kind(self.domain)
            typed.append(sql.SQL(f"geom geometry({kind}, {int(self.srid)}) NOT NULL"))
        yield self._fill(
            "CREATE TABLE {} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
            "tick bigint NOT NULL REFERENCES {ticks} (tick), {})", self.name(table), sql.SQL(", ").join(typed),
        )  # fmt: skip
        yield self._fill("CREATE INDEX ON {} (tick)", self.name(table))
        if self.srid is not None:
            yield self._fill("CREATE INDEX ON {} USING gist (geom)", self.name(table))
        yield self._fill(
            "CREATE VIEW {} AS SELECT * FROM {} WHERE tick = (SELECT max(tick) FROM {ticks})",
            self.name(f"{table}_latest"), self.name(table),
        )  # fmt: skip

    def _fill(self, text: str, *names: Any) -> Any:
        sql = driver("psycopg.sql", "postgres")
        return sql.SQL(text).format(*names, stream=self.name("stream"), ticks=self.name("ticks"))

    def rows(self, release: Release, table: str) -> Iterator[pa.Table]:
        """Yield a release's rows, some at a time, as they go into a table."""
        cells = release.cells()
        number = int(release.points.sum()) if table == "points" else cells.num_rows
        points = release.sample() if table == "points" else None
        for start in range(0, number, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            rows = cells[some] if points is None else point_rows(release, some, points)
            ticks = pa.array(np.full(rows.num_rows, release.tick))
            rows = rows.add_column(0, "tick", ticks)
            if self.srid is not None:
                shapes = self._shapes(release, some, points)
                wkb = shapely.to_wkb(shapely.set_srid(shapes, self.srid), hex=True, include_srid=True)
                rows = rows.append_column("geom", pa.array(wkb, pa.string()))
            yield rows

    def _shapes(self, release: Release, some: slice, points: NDArray[Any] | None) -> NDArray[Any]:
        if points is not None:
            return np.atleast_1d(shapely.points(locations_of(points[some], self.domain.location.names)))
        drawn = cell_shapes(self.domain, release.leaves[some])
        return np.array([_as_multi(shape) for shape in drawn], dtype=object)


def has_geometry(domain: Domain) -> bool:
    """Tell whether points of a domain can be drawn on a plane."""
    return domain.location.dimension == 2


def point_rows(release: Release, some: slice, points: NDArray[Any] | None = None) -> pa.Table:
    """Return some of the synthetic points as columns."""
    points = release.sample() if points is None else points
    columns = point_columns(points[some], release.domain.names)
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def rows_as_csv(rows: pa.Table) -> bytes:
    """Return rows as COPY reads them: numbers to their last bit, and no header."""
    buffer = BytesIO()
    pyarrow.csv.write_csv(rows, buffer, pyarrow.csv.WriteOptions(include_header=False))
    return buffer.getvalue()


def _kind(domain: Domain) -> str:
    """Return the kind of a domain's cells: areas, or lines on a network."""
    dimension = int(shapely.get_dimensions(cell_shapes(domain, np.array([ROOT])))[0])
    return "MultiPolygon" if dimension == 2 else "MultiLineString"


def _as_multi(shape: Any) -> Any:
    """Return a polygon as a multipolygon, others as they are; of a mixture, its polygons."""
    if shape.geom_type == "Polygon":
        return shapely.MultiPolygon([shape])
    if shape.geom_type == "GeometryCollection":
        return shapely.MultiPolygon([part for part in shapely.get_parts(shape) if part.geom_type == "Polygon"])
    return shape
