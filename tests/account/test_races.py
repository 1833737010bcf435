"""A thousand races for the last bit of an account's budget: processes and their threads, started together."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from phdstream.account.folder import AccountFolder
from tests.account.accounts import book, draw

RACES, PROCESSES, THREADS = 1000, 3, 2
CONTENDER = """
import sys, threading
from pathlib import Path
from phdstream.errors import BudgetError
from tests.account.accounts import draw

base, me, races, threads = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
won = []
def contend(race, number):
    try:
        draw(base / str(race), number, "0.1")
        won.append(race)
    except BudgetError:
        pass
for race in range(races):
    print(race, flush=True)
    sys.stdin.readline()  # the same instant for all
    both = [threading.Thread(target=contend, args=(race, 10 * me + one + 1)) for one in range(threads)]
    for one in both:
        one.start()
    for one in both:
        one.join()
print(*won, flush=True)
"""


@pytest.fixture
def fast() -> Iterator[Path]:
    """Memory, where there is some: what races here is the lock, not the disk."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.slow
def test_a_thousand_races_for_the_last_bit(fast: Path) -> None:
    """Each race is in an account of its own that has nothing left but 0.1; every fourth is not even open."""
    for race in range(RACES):
        if race % 4:
            draw(fast / str(race), 0, "0.9")
    arguments = [sys.executable, "-c", CONTENDER, str(fast)]
    contenders = [
        subprocess.Popen(
            [*arguments, str(me), str(RACES), str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for me in range(PROCESSES)
    ]
    won: list[int] = []
    for race in range(RACES):
        for one in contenders:
            assert one.stdout is not None
            assert one.stdout.readline() == f"{race}\n"
        for one in contenders:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
    for one in contenders:
        won += map(int, one.communicate()[0].split())
        assert one.returncode == 0
    for race in range(RACES):
        found = AccountFolder(fast / str(race)).read()
        assert (found.torn, found.behind) == (False, False)
        if race % 4:
            assert book(fast / str(race)).left == 0
            assert won.count(race) == 1
        else:
            assert book(fast / str(race)).drawn == Fraction("0.1") * PROCESSES * THREADS
            assert won.count(race) == PROCESSES * THREADS
