"""`phdstream card`: a draft of a stream's entry in OpenDP's public registry of deployments of differential privacy.

All that the configuration fixes is filled in; what only people know comes from ``[about]``, and is marked where it is
missing. Nothing of it comes from data, so all of it may be published; the number of the last tick is public too.
"""

from __future__ import annotations

import json
import re
from typing import Any

from phdstream.app.about import ABOUT
from phdstream.app.config import Config
from phdstream.errors import ConfigError, StateError
from phdstream.streams.guarantee import exactly
from phdstream.version import __version__

__all__ = ["MISSING", "card", "last_tick", "missing"]

MISSING = "MISSING: "
"""How a text begins that somebody has to write."""
_ADJACENT = {
    "event": "Two streams are adjacent if one has a single event (one appearance or one disappearance) more.",
    "record": "Two streams are adjacent if one has a single record more: one appearance and, if there is one, its "
    "later disappearance.",
    "user": "Two streams are adjacent if one has all events of a single user more. Of a user's events at most "
    "{inserts} appearances and {deletes} disappearances are ever used; the bound is enforced before anything is "
    "counted.",
}


def card(config: Config, last_tick: int | None = None) -> dict[str, Any]:
    """Return the entry as plain data, in the registry's order; ``last_tick`` is the last one released, if any is.

    Every field is as the registry's schema wants it, except those that `missing` lists.
    """
    if config.seed is not None:
        raise ConfigError("a stream with [simulation] promises nothing, so there is nothing to register.")
    said = {key: _mark(key) for key, (tier, _) in ABOUT.items() if tier} | _scheduled(config) | config.about
    return {
        "url_slug": _slug(said),
        "deployment": {
            "basic": _basic(said),
            "dp_variant": _variant(config, said),
            "privacy_loss": _loss(config, said),
            "deployment_model": _model(config, said, last_tick),
            "implementation": _implementation(config, said),
            "administrative": _administrative(config, said),
        },
    }


def missing(config: Config) -> list[str]:
    """Return what people still have to say in ``[about]``, each with its tier; the most needed first."""
    return [f"[about] {key} (tier {tier}): {what}" for key, (tier, what) in ABOUT.items() if key in _unsaid(config)]


def last_tick(config: Config) -> int | None:
    """Return the last tick that was released, as the public manifest says; None if there is none yet."""
    try:
        tick = json.loads((config.releases / "manifest.json").read_bytes())["last_tick"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise StateError(f"{config.releases / 'manifest.json'} cannot be read. Put it back from a copy.") from None
    return int(tick)


def _mark(key: str) -> str:
    return f"{MISSING}{ABOUT[key][1]}"


def _unsaid(config: Config) -> set[str]:
    said = config.about.keys() | _scheduled(config).keys()
    return {key for key, (tier, _) in ABOUT.items() if tier and key not in said}


def _scheduled(config: Config) -> dict[str, str]:
    """Return the date on which the first release is due, by the public schedule."""
    first = config.clock and config.clock.end_of(config.options.get("start_after", 1))
    return {"published": (first + config.clock.grace).date().isoformat()} if config.clock and first else {}


def _slug(said: dict[str, Any]) -> str:
    parts = [said["title"], said["organisation"], said["published"][:4]]
    words = [re.sub(r"\W+", "-", part.lower()).strip("-") for part in parts if not part.startswith(MISSING.strip())]
    return "-".join(words) or "draft"


def _basic(said: dict[str, Any]) -> dict[str, Any]:
    curator = {"data_curator_name": said["organisation"], "data_curator_type": said["organisation_type"]}
    basic = {
        "name": said["title"],
        "data_curators": [curator],
        "description": said["description"],
        "intended_use": said["intended_use"],
        "data_product_type": "Synthetic data",
        "data_product_region": said["region"],
        "data_product_sector": said.get("sector"),
        "publication_date": said["published"],
    }
    return {key: value for key, value in basic.items() if value is not None}


def _variant(config: Config, said: dict[str, Any]) -> dict[str, Any]:
    signs = "appearances" if config.input.columns.sign is None else "appearances and disappearances"
    return {
        "variant_name": "Pure DP",
        "data_domain": f"{said['data']}\n\nStreams of {signs} of points in {config.domain!r}; points outside it are "
        "counted nowhere.",
        "unprotected_quantities": "No number in the releases. The domain, the schedule, ε, the unit and all parameters "
        "are public and fixed before data is seen. Whether a stream begins at all may depend on whether most of its "
        "first rows can be used. How long counting takes is not protected. All that is known not to be covered, by "
        f"version: docs/privacy/known-limits.md of phdstream {__version__}.",
    }


def _loss(config: Config, said: dict[str, Any]) -> dict[str, Any]:
    unit = config.unit.to_dict()
    number = {"number_of_privacy_units": said["units"]} if isinstance(said["units"], int) else {}
    return {
        "privacy_unit": f"{unit['type'].capitalize()}-level",
        "privacy_unit_details": _ADJACENT[unit["type"]].format(**unit),
        **number,
        "privacy_parameters": {"epsilon": config.epsilon},
        "privacy_parameters_details": f"ε = {exactly(config.epsilon)} for {config.unit.guarantee}, over the whole "
        "stream: it does not grow with the number of releases, and never resets.",
    }


def _model(config: Config, said: dict[str, Any], last_tick: int | None) -> dict[str, Any]:
    one = config.clock is not None and config.clock.count == 1
    return {
        "model_name": "Central",
        "model_name_details": "The operator holds the events, counts them and adds the noise.",
        "trust_assumptions": "The operator is trusted with the events. Nobody who sees releases is: the promise holds "
        "whatever they know, and if they see all releases.",
        "actors": said["actors"],
        "release_type": "One release" if one else "Many releases",
        "release_type_details": _schedule(config, last_tick),
        "data_source_type": "Dynamic",
        "data_source_type_details": "Events keep coming; each belongs to the tick of its own time.",
        "access_type": "Non-interactive",
        "access_type_details": "Queries are answered from what was released, at no cost in privacy.",
    }


def _schedule(config: Config, last_tick: int | None) -> str:
    assert config.clock is not None  # ticks by rows are for simulations only
    ends = "" if config.clock.count is None else f", {config.clock.count} in all"
    so_far = f"The last tick released is {last_tick}." if last_tick else "None is released yet."
    return (
        f"One release at the end of each tick of {config.clock.every}, from {config.clock.start.isoformat(' ')} "
        f"on{ends}. ε is for all of them together; the budget does not reset. {so_far}"
    )


def _implementation(config: Config, said: dict[str, Any]) -> dict[str, Any]:
    contact = {"additional_information": f"Contact: {said['contact']}"} if "contact" in said else {}
    return {
        "preprocessing_and_hyperparameter_tuning": said["tuning"],
        "mechanisms": _mechanisms(config),
        "composition": _composition(config),
        "post_processing": "Everything after the noisy counts: which cells to count next, consistency, filtering over "
        "time, smoothing, synthetic points, answers to queries.",
        "justification": said["justification"],
        "utility": "Every count is released with the standard error of its noise, and every release says whether it is "
        "expected to be of use.",
        **contact,
    }


def _mechanisms(config: Config) -> str:
    told = [line for line in config.stream().describe().splitlines() if line.startswith(("Budget", "Choos", "Count"))]
    facts = [
        f"phdstream {__version__}, method {config.method}.",
        "Noise: discrete Laplace on whole counts, sampled exactly in integer arithmetic, from the operating system's "
        "randomness; no floating-point noise.",
        *told,
        "Noise for a tick is drawn once: a release is committed to the disk before anybody can see it.",
        "Releases follow a fixed schedule. The state at rest is for the operator only.",
    ]
    return "\n".join(f"- {fact}" for fact in facts)


def _composition(config: Config) -> str:
    text = (
        "Basic composition: every count that an event enters is charged to it in exact fractions, and refused beyond "
        "its share; the shares of a unit's events add up to ε at most. Cells that are counted together are disjoint."
    )
    if config.account:
        text += (
            f" Together with other streams about the same population ({config.account.population}), it draws on one "
            f"budget of ε = {config.account.epsilon}; a stream that would exceed it does not start."
        )
    return text


def _administrative(config: Config, said: dict[str, Any]) -> dict[str, Any]:
    authors = said["authors"]
    tiers = {ABOUT[key][0] for key in _unsaid(config)}
    source = {"evidence_source_type": "Formal publication by the deploying organization"}
    found = {"releases": source | {"misc": {"title": said["title"], "url": said["url"]}}} if "url" in said else {}
    return {
        **({"evidence_sources": found} if found else {}),
        "status": "Draft",
        "registry_authors": authors if isinstance(authors, list) else [authors],
        "tier": 1 if 1 in tiers else 2 if 3 in tiers else 3,
    }
