"""`phdstream demo`: the moving circles, true and synthetic, on a page to look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from phdstream.app.demo.comparison import EPSILONS, follow
from phdstream.app.demo.page import write_page
from phdstream.errors import InputError

__all__ = ["run_demo"]


def run_demo(out: Path, progress: Callable[[int, int | None], None] = lambda done, total: None) -> Path:
    """Run the demonstration and return the page."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        raise InputError("the demo draws with matplotlib: install it with  pip install 'phdstream[plot]'.") from None
    runs = [follow(epsilon, i, progress) for i, epsilon in enumerate(EPSILONS)]
    try:
        out.mkdir(parents=True, exist_ok=True)
        return write_page(out, runs)
    except OSError as error:
        raise InputError(f"the page cannot be written to {out} ({error.strerror}): choose another folder.") from None
