"""Reading ahead: the next batches are read and decoded while the present one is being counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["ahead"]

Item = TypeVar("Item")
_END: Any = object()


def ahead(items: Iterator[Item], depth: int = 12) -> Iterator[Item]:
    """Yield the same items in the same order, up to ``depth`` of them fetched in advance by one other thread.

    An error comes where it would have come: after all items before it.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, items, _END) for _ in range(depth))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(thread.submit(next, items, _END))
            yield item
