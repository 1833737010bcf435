"""What a configuration says about its engine: the section ``[engine]``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phdstream.errors import ConfigError

__all__ = ["KNOWN", "EngineSettings", "read_engine"]

KNOWN = {"type", "master", "storage", "properties"}
"""The keys of the section."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://")


@dataclass(frozen=True)
class EngineSettings:
    """Spark as the engine.

    - ``storage``: a private folder that driver and workers all reach, by path or by an address Hadoop knows;
    - ``master``: the cluster, such as ``"spark://host:7077"`` or ``"yarn"``; None for what `spark-submit` says, or this
      machine alone;
    - ``properties``: Spark's own settings.
    """

    storage: str
    master: str | None = None
    properties: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return what must not change on the way: where open blocks and users' tables are."""
        return {"type": "spark", "storage": self.storage}


def read_engine(given: dict[str, Any], base: Path, state: Path) -> EngineSettings | None:
    """Return the section, checked; None for the engine that is built in. Paths are relative to ``base``.

    >>> read_engine({"type": "local"}, Path(), Path("state")) is None
    True
    >>> read_engine({"type": "spark", "master": "local[2]"}, Path(), Path("/private/state")).storage
    '/private/state/spark'
    """
    kind = given.get("type", "local")
    if kind not in ("local", "spark"):
        raise ConfigError('[engine] type must be "local" or "spark".')
    if kind == "local":
        if set(given) - {"type"}:
            raise ConfigError('[engine] master, storage and properties are Spark\'s: set type = "spark".')
        return None
    master, storage, properties = given.get("master"), given.get("storage"), given.get("properties", {})
    if master is not None and (not isinstance(master, str) or not master):
        raise ConfigError('[engine] master must be text such as "spark://host:7077", "yarn" or "local[4]".')
    if storage is not None and (not isinstance(storage, str) or not storage or "\0" in storage):
        raise ConfigError("[engine] storage must be the path or address of a folder that all workers reach.")
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        raise ConfigError('[engine.properties] must be names and texts, such as "spark.executor.memory" = "4g".')
    return EngineSettings(_storage(storage, base, state), master, dict(properties))


def _storage(given: str | None, base: Path, state: Path) -> str:
    if given is None:
        return str(state.absolute() / "spark")
    return given if _ADDRESS.match(given) else str((base / Path(given).expanduser()).absolute())
