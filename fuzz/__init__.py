"""A fuzzer: damaged files, odd arguments and odd queries must end in one of our own errors, or in a sound result.

    python -m fuzz                                   a few minutes of every kind, on two processes
    python -m fuzz --cases 100000 --json docs/fuzzing.json          the run on record
    python -m fuzz --case files:12345                one case again, with its traceback
    python -m fuzz --only files --cases 5000 --seed 7

A case is named by its kind and a number, and is the same each time: everything it does follows from that name. It fails
if an exception comes that is not a `PhdstreamError`, if a promise is broken (`AssertionError`), if it takes more than
five seconds (twice, since other work may slow it down), if memory grows by more than 1 GB, or if the process dies.
"""

from __future__ import annotations
