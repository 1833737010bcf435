"""What is proved here, and what its maker vouches for.

The proofs (docs/privacy) are of the noise, the counters and the domains of this library. One of one's own may be as
good, but nobody here has shown it: it is refused, unless it has an attribute ``unproved``, a sentence that says who
vouches for it and on what grounds. What such a stream releases, and its description, repeat that sentence.

Units, methods and engines of one's own are not taken at all: they would change what is promised, or all that is done
for it.
"""

from __future__ import annotations

from phdstream.errors import InputError

__all__ = ["check_ours", "check_proved", "vouched_for"]

_PROVED = ("phdstream.privacy.", "phdstream.domains.", "phdstream.streams.paper.counters.")
"""The rooms that docs/privacy is about. A class derived from one of theirs is not of them."""
_OURS = ("phdstream.privacy.", "phdstream.streams.", "phdstream.engines.")


def check_proved(what: str, part: object) -> None:
    """Refuse a part of a stream that is not proved here, and that nobody vouches for.

    >>> from fractions import Fraction
    >>> check_proved("source of noise", Fraction(1))                                           # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phdstream.errors.InputError: Fraction is a source of noise of your own, and that it keeps ε is not proved here. ...
    """
    if vouched_for(what, part) and not _statement(part):
        name = type(part).__name__
        raise InputError(
            f"{name} is a {what} of your own, and that it keeps ε is not proved here. To use it all the same, give it "
            "an attribute 'unproved', a sentence that says who vouches for it and why: every release will repeat it."
        )


def check_ours(what: str, part: object) -> None:
    """Refuse a part of a stream that must be this library's own.

    >>> from fractions import Fraction
    >>> check_ours("engine", Fraction(1))
    Traceback (most recent call last):
    phdstream.errors.InputError: Fraction is no engine of this library. That one of your own keeps ε is not proved here.
    """
    if not f"{type(part).__module__}.".startswith(_OURS):
        name = type(part).__name__
        raise InputError(f"{name} is no {what} of this library. That one of your own keeps ε is not proved here.")


def vouched_for(what: str, part: object) -> str:
    """Return what releases say of a part that is not proved here; nothing if it is.

    >>> from phdstream.privacy import ExactNoise
    >>> vouched_for("source of noise", ExactNoise())
    ''
    """
    kind = type(part)
    if f"{kind.__module__}.".startswith(_PROVED):
        return ""
    return f"the {what} {kind.__name__} is not proved here ({_statement(part) or 'nobody vouches for it'})"


def _statement(part: object) -> str:
    said = getattr(part, "unproved", "")
    return said.strip() if isinstance(said, str) else ""
