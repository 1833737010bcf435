"""JSON of any length, read a piece at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from phdstream.errors import InputError

__all__ = ["DECODER", "JsonPieces"]

DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
"""Numbers stay the text that was written."""
_CHUNK = 1 << 20
_LONGEST = 1 << 24
"""No single value is as long as this many characters: what is must be damaged."""
_SPACE = re.compile(r"\s*")


class JsonPieces:
    """JSON read a piece at a time: at any moment it holds little more than the value it stands at."""

    def __init__(self, path: Path, read: Callable[[int], str]) -> None:
        self.path, self._read = path, read
        self._text, self._at, self._ended = "", 0, False

    def peek(self) -> str:
        """Return the next character that is not space; nothing at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more()

    def expect(self, mark: str) -> None:
        """Step over a mark, which must be next."""
        if self.peek() != mark:
            raise self._broken()
        self._at += 1

    def value(self) -> Any:
        """Step over a whole value, and return it."""
        self.peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                if self._ended or len(self._text) - self._at > _LONGEST:
                    raise self._broken() from None
            else:
                if end < len(self._text) or self._ended:  # else a number may go on
                    self._at = end
                    return value
            self._more()

    def elements(self) -> Iterator[dict[str, Any] | None]:
        """Step over a list, and yield its objects; None for an element that is none."""
        self.expect("[")
        while self.peek() not in ("]", ""):
            value = self.value()
            yield value if isinstance(value, dict) else None
            if self.peek() != ",":
                break
            self.expect(",")
        self.expect("]")

    def _more(self) -> None:
        rest = self._text[self._at :]
        piece = self._read(max(_CHUNK, len(rest)))
        self._text, self._at, self._ended = rest + piece, 0, not piece

    def _broken(self) -> InputError:
        return InputError(f"{self.path} is not a whole GeoJSON file. Is it empty, cut off, or of another format?")
