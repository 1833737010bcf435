"""`phdstream demo`: an invented city on the page that readers see, and the paper's circles, true and synthetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from phdstream.app.demo.city import DAYS, publish_city
from phdstream.app.demo.comparison import EPSILONS, TICKS, follow
from phdstream.app.demo.custodian import write_custodian
from phdstream.app.demo.page import write_page
from phdstream.errors import InputError

__all__ = ["run_demo"]


def run_demo(out: Path, progress: Callable[[int, int | None], None] = lambda done, total: None) -> Path:
    """Run the demonstration and return the page."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        raise InputError("the demo draws with matplotlib: install it with  pip install 'phdstream[plot]'.") from None
    try:
        out.mkdir(parents=True, exist_ok=True)
        total = DAYS + TICKS * len(EPSILONS)
        city = publish_city(out, lambda done, _: progress(done, total))
        private = write_custodian(out, city)
        runs = [follow(epsilon, i, lambda done, _: progress(DAYS + done, total)) for i, epsilon in enumerate(EPSILONS)]
        return write_page(out, runs, city.page, private)
    except OSError as error:
        raise InputError(f"the page cannot be written to {out} ({error.strerror}): choose another folder.") from None
