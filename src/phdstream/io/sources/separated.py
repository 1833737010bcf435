"""CSV and its kin, line by line: every line is one row, whatever the other lines hold.

CSV as such lets a quoted value run over several lines, so that one stray quotation mark would swallow the rows after
it. Here a line is a row: a quotation mark that is not closed ends with its line. A line with an odd number of them is
closed beforehand. Arrow parses many lines at once; if it still finds fewer rows than there are lines, some value ran
on, and the lines are parsed in halves, down to single ones.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv

from phdstream.errors import InputError
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.reading import Reading, Rows, text_column

__all__ = ["read_separated"]

_BLOCK = 1 << 23
_LONGEST = 1 << 20
"""No line is as long as this many bytes: one that is, is no row."""
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNDECODABLE = b"\xff"
"""Takes the place of what an encoding cannot decode: never valid in UTF-8, so the row is known as bad later."""


def read_separated(path: Path, columns: Columns, reading: Reading, delimiter: str, notes: list[str]) -> Iterator[Rows]:
    """Yield a file's rows with the columns needed, as text; ``delimiter`` is what the file's ending stands for."""
    with pa.input_stream(path) as file:
        blocks = _blocks(_decoded(path, file, reading))
        first = next((lines for lines in blocks if lines), None)
        if first is None:
            raise InputError(
                f"{path} has not even a first line with the names of the columns. Is it empty, cut off, or of another "
                "format?"
            )
        names, delimiter = _header(path, first[0], columns, reading, delimiter, notes)
        parser = _Parser(names, columns.find(str(path), names, geometry=False).columns, delimiter)
        yield parser.rows(first[1:])
        for lines in blocks:
            yield parser.rows(lines)


def _decoded(path: Path, file: IO[bytes], reading: Reading) -> Iterator[bytes]:
    """Yield the content as UTF-8, a piece at a time."""
    piece = file.read(_BLOCK)
    if piece.startswith(_WIDE):
        raise InputError(
            f"{path} is in UTF-16, in which one byte too many in one row would spoil all rows after it: save it as "
            "UTF-8."
        )
    encoding = codecs.lookup(reading.encoding or "utf-8").name
    piece = piece.removeprefix(codecs.BOM_UTF8) if encoding == "utf-8" else piece
    decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)("replace")
    while piece:
        yield piece if decoder is None else _as_utf8(decoder.decode(piece))
        piece = file.read(_BLOCK)
    if decoder is not None:
        yield _as_utf8(decoder.decode(b"", final=True))


def _as_utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").replace("\ufffd".encode(), _UNDECODABLE)


def _blocks(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield whole lines that are not blank, many at a time. Of a line that is far too long some is left out."""
    rest = b""
    for piece in pieces:
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
        if end:
            yield [line for line in (rest + piece[:end]).splitlines() if line]
            rest = piece[end:]
        elif len(rest) <= _LONGEST:
            rest += piece
    if rest:
        yield [rest]


def _header(
    path: Path, head: bytes, columns: Columns, reading: Reading, delimiter: str, notes: list[str]
) -> tuple[list[str], str]:
    """Return the names of the columns, and what separates them: what was said, or else what the header shows."""
    text = head.decode("utf-8", "replace")
    if reading.delimiter is not None:
        return _split(text, reading.delimiter), reading.delimiter
    for mark in (delimiter, *(other for other in _DELIMITERS if other != delimiter)):
        names = _split(text, mark)
        if all(name in names for name in columns.needed):
            if mark != delimiter:
                notes.append(f"{path}: columns are separated by {_DELIMITERS[mark]}, as its first line shows.")
            return names, mark
    return _split(text, delimiter), delimiter


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:  # a field longer than any name
        return []


class _Parser:
    """Turns lines into rows."""

    def __init__(self, names: list[str], needed: list[str], delimiter: str) -> None:
        self._names, self._delimiter = names, delimiter
        self._no_row = delimiter.encode() * len(names)  # a column too many
        self._lead = delimiter.encode().join([b"x"] * len(names)) + b"\n"
        """A row before all others, and then left out: of the first one Arrow would take away a byte order mark."""
        self._schema = pa.schema([(name, pa.binary()) for name in needed])
        self._convert = pyarrow.csv.ConvertOptions(
            include_columns=needed, column_types=self._schema, strings_can_be_null=False, check_utf8=False
        )

    def rows(self, lines: list[bytes]) -> Rows:
        """Return the rows of some lines."""
        lines = [line if len(line) <= _LONGEST else self._no_row for line in lines]
        open_ended = [place for place, line in enumerate(lines) if line.count(b'"') % 2]
        if open_ended:
            closed = dict.fromkeys(open_ended)
            lines = [self._closed(line) if place in closed else line for place, line in enumerate(lines)]
        tables, ragged = self._parse(lines, 0)
        batches = pa.concat_tables([self._schema.empty_table(), *tables]).combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self._schema)
        batch = pa.RecordBatch.from_arrays([text_column(column) for column in batch.columns], names=batch.schema.names)
        complaint = "a row does not have as many columns as the first line" if ragged else ""
        return Rows(batch, len(ragged), min(ragged, default=0), complaint)

    def _closed(self, line: bytes) -> bytes:
        """Return a line with an odd number of quotation marks as one that says the same, and ends where it ends."""
        try:
            (fields,) = csv.reader([line.decode("latin-1")], delimiter=self._delimiter)
        except (ValueError, csv.Error):
            return self._no_row
        quoted = ('"' + field.replace('"', '""') + '"' for field in fields)
        return self._delimiter.join(quoted).encode("latin-1")

    def _parse(self, lines: list[bytes], first: int) -> tuple[list[pa.Table], list[int]]:
        """Return the rows of some lines, and the places of the lines that are none."""
        if not lines:
            return [], []
        table, ragged = self._arrow(b"\n".join(lines))
        if table is not None and table.num_rows + len(ragged) == len(lines):
            return [table], [first + place for place in ragged]
        if len(lines) == 1:
            return [], [first]
        half = len(lines) // 2
        (rows, none), (more, others) = self._parse(lines[:half], first), self._parse(lines[half:], first + half)
        return rows + more, none + others

    def _arrow(self, block: bytes) -> tuple[pa.Table | None, list[int]]:
        ragged: list[int] = []

        def skip(row: Any) -> str:
            ragged.append(row.number - 2)
            return "skip"

        block = self._lead + block
        try:
            table = pyarrow.csv.read_csv(
                pa.py_buffer(block),
                read_options=pyarrow.csv.ReadOptions(
                    column_names=self._names, use_threads=False, block_size=len(block) + 1
                ),
                parse_options=pyarrow.csv.ParseOptions(delimiter=self._delimiter, invalid_row_handler=skip),
                convert_options=self._convert,
            )
        except pa.ArrowInvalid:
            return None, []
        return table.slice(1), ragged
