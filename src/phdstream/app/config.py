"""The configuration file: TOML, checked as a whole before anything is read or written."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from phdstream.account.settings import KNOWN as ACCOUNT_KEYS
from phdstream.account.settings import AccountSettings, read_account
from phdstream.app.about import ABOUT, read_about
from phdstream.app.input_table import Input, a_path, a_text, read_input, read_ticks
from phdstream.domains import Domain, Hierarchy
from phdstream.engines.settings import KNOWN as ENGINE_KEYS
from phdstream.engines.settings import EngineSettings, read_engine
from phdstream.errors import ConfigError, InputError, PhdstreamError, did_you_mean
from phdstream.io.domain_table import DOMAIN_FILES, configured_domain
from phdstream.io.prior_table import PRIOR_KEYS, configured_prior
from phdstream.io.sinks.settings import SinkSettings, read_sinks
from phdstream.io.sinks.writers import check_format
from phdstream.io.sources.addresses import local_path
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.privacy import Simulation, Unit, unit_from_dict
from phdstream.service.feeds.settings import KNOWN as SOURCE_KEYS
from phdstream.service.feeds.settings import SourceSettings, read_source
from phdstream.service.settings import KNOWN as SERVICE_KEYS
from phdstream.service.settings import ServiceSettings, read_service
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.stream import Stream
from phdstream.streams.tracking import TrackingStream

__all__ = ["Config", "load_config"]

_KNOWN: dict[str, tuple[set[str], set[str]]] = {  # section: (required, optional)
    "input": (
        {"coordinates"},
        {"files", "time", "sign", "user", "bad_rows", "delimiter", "decimal", "encoding", "time_format", "memory"},
    ),
    "ticks": (set(), {"every", "start", "end", "grace", "rows"}),
    "domain": (
        {"type"},
        {
            "bounds",
            "fanout",
            "depth",
            "resolution",
            "dimension",
            "crs",
            "tree_crs",
            *DOMAIN_FILES,
            "snap",
            "place",
            "attributes",
            "schedule",
        },
    ),
    "privacy": ({"epsilon", "unit"}, {"tree_share"}),
    "stream": (set(), {"method", "counter", "threshold", "window", "start_after", "max_nodes"}),
    "prior": (set(), PRIOR_KEYS),
    "output": ({"releases", "state"}, {"format"}),
    "simulation": ({"seed"}, set()),
    "service": (set(), set(SERVICE_KEYS)),
    "source": ({"type"}, SOURCE_KEYS),
    "engine": ({"type"}, ENGINE_KEYS - {"type"}),
    "account": (ACCOUNT_KEYS, set()),
    "about": (set(), set(ABOUT)),
}
_OPTIONAL_SECTIONS = {"stream", "prior", "simulation", "service", "source", "engine", "account", "about"}
_SINKS = "sinks"
_METHODS: dict[str, Any] = {"tracking": TrackingStream, "phdstream": PHDStream}
_ONLY_PHDSTREAM = ("counter", "threshold", "tree_share")


@dataclass(frozen=True)
class Config:
    """A checked configuration: what to read, how to cut it into ticks, what to promise, where to write."""

    input: Input
    clock: Clock | None
    rows_per_tick: int | None
    domain: Domain
    unit: Unit
    epsilon: float
    method: str
    options: dict[str, Any]
    seed: int | None
    releases: Path
    state: Path
    format: str
    service: ServiceSettings
    account: AccountSettings | None = None
    about: dict[str, Any] = field(default_factory=dict)
    engine: EngineSettings | None = None
    sinks: tuple[SinkSettings, ...] = ()
    source: SourceSettings | None = None

    def stream(self) -> Stream:
        """Return a new stream as configured. Without a sign column it is declared insert-only."""
        noise = None if self.seed is None else Simulation(self.seed)
        fixed: dict[str, Any] = {"insert_only": self.input.columns.sign is None, "noise": noise} | self.options
        stream: Stream = _METHODS[self.method](self.domain, self.epsilon, self.unit, **fixed)
        return stream


def load_config(path: str | Path) -> Config:
    """Read and check a configuration file; paths in it are relative to the file."""
    path = Path(path).expanduser()
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {path}.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read as a configuration file: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number of thousands of digits
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ConfigError(f"{path} is not valid TOML: {why}.") from None
    try:
        _check_keys(sections)
        config = _build(sections, path.parent)
        config.stream()  # refuses bad privacy parameters and options now
    except (PhdstreamError, TypeError, OverflowError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return config


def _check_keys(sections: dict[str, Any]) -> None:
    for section in sections:
        if section not in _KNOWN and section != _SINKS:
            raise ConfigError(f"unknown section [{section}]: {did_you_mean(section, [*_KNOWN, _SINKS])}")
    for section, (required, optional) in _KNOWN.items():
        if section not in sections and section not in _OPTIONAL_SECTIONS:
            raise ConfigError(f"section [{section}] is missing.")
        keys = sections.get(section, {} if section in _OPTIONAL_SECTIONS else None)
        if not isinstance(keys, dict):
            raise ConfigError(f"[{section}] must be a section of names and values.")
        for key in keys:
            if key not in required | optional:
                raise ConfigError(f"[{section}] has an unknown key '{key}': {did_you_mean(key, required | optional)}")
        for key in sorted(required - set(keys)) if section in sections else ():
            raise ConfigError(f"[{section}] needs '{key}'.")


def _build(sections: dict[str, Any], base: Path) -> Config:
    seed = sections.get("simulation", {}).get("seed")
    unit = _unit(sections["privacy"]["unit"])
    clock, rows = read_ticks(sections["ticks"], seed)
    given = read_input(sections["input"], base, unit, zone=clock is not None and clock.zone)
    if clock and given.columns.time is None:
        raise ConfigError("[input] needs 'time', the column that says when each event happened.")
    options = dict(sections.get("stream", {}))
    if "window" in options and given.columns.sign is not None:
        raise ConfigError("[stream] window makes records expire by themselves, so [input] must have no 'sign'.")
    if "tree_share" in sections["privacy"]:
        options["tree_share"] = sections["privacy"]["tree_share"]
    method = _method(options)
    domain = _domain(sections["domain"], given.columns, base)
    given = replace(
        given,
        columns=replace(
            given.columns,
            names=isinstance(domain.location, Hierarchy),
            attributes=tuple(attribute.to_dict() for attribute in domain.attributes),
        ),
        reading=replace(given.reading, crs=domain.crs),
    )
    if "prior" in sections:
        options["prior"] = configured_prior(sections["prior"], given.columns.coordinates, base)
    releases, state = _folders(sections["output"], base)
    return Config(
        given, clock, rows, domain, unit, sections["privacy"]["epsilon"], method, options, seed, releases, state,
        _format(sections["output"], domain), read_service(sections.get("service", {}), base),
        _account(sections, base, releases, state), read_about(sections.get("about", {})),
        _engine(sections, base, state, clock, given.patterns),
        read_sinks(sections.get(_SINKS, []), base),
        _source(sections, base, clock),
    )  # fmt: skip


def _domain(section: dict[str, Any], columns: Columns, base: Path) -> Domain:
    try:
        return configured_domain(section, columns.coordinates, base)
    except InputError as error:
        if str(error).startswith("names must be"):
            wanted = str(error).split()[3]
            raise ConfigError(
                f"[input] coordinates names {len(columns.coordinates)} column(s), but a point of this domain has "
                f"{wanted} coordinates: name a column for each, in the domain's order."
            ) from None
        raise


def _folders(output: dict[str, Any], base: Path) -> tuple[Path, Path]:
    """Return the public and the private folder, neither of which may lie in the other."""
    releases, state = (base / a_path(output[key], f"[output] {key}") for key in ("releases", "state"))
    try:
        public, private = releases.resolve(), state.resolve()
    except (OSError, RuntimeError):  # a link that leads to itself
        raise ConfigError("[output] releases and state must be paths of folders; one leads nowhere.") from None
    if public == private or public in private.parents:
        raise ConfigError("[output] state is private and must lie outside releases, which is for the public.")
    if private in public.parents:
        raise ConfigError("[output] releases is for the public and must lie outside state, which is private.")
    return releases, state


def _account(sections: dict[str, Any], base: Path, releases: Path, state: Path) -> AccountSettings | None:
    apart = {"[output] releases": releases, "[output] state": state}
    return read_account(sections["account"], base, apart) if "account" in sections else None


def _engine(
    sections: dict[str, Any], base: Path, state: Path, clock: Clock | None, files: tuple[str, ...]
) -> EngineSettings | None:
    engine = read_engine(sections.get("engine", {}), base, state)
    if engine is not None and clock is None:
        raise ConfigError('[engine] type = "spark" needs ticks of time: set every and start in [ticks], not rows.')
    source = sections.get("source")
    if engine is not None and source is not None and source.get("type") != "kafka":
        raise ConfigError('[engine] type = "spark" reads files or Kafka; no other [source].')
    if engine is not None and source is not None and files:
        raise ConfigError('[engine] type = "spark" reads files or a [source], not both: take one of them out.')
    if engine is not None and any(local_path(name) is None for name in files):
        raise ConfigError(
            '[engine] type = "spark" reads [input] files from paths that all its machines see, not addresses. Mount '
            "the bucket there, or read s3a://... in a Structured Streaming query of your own; or leave out [engine]: "
            "then objects are fetched and counted here."
        )
    return engine


def _source(sections: dict[str, Any], base: Path, clock: Clock | None) -> SourceSettings | None:
    if "source" not in sections:
        return None
    if clock is None:
        raise ConfigError("[source] needs [ticks] every and start: ticks of so many rows are for files.")
    return read_source(sections["source"], base)


def _method(options: dict[str, Any]) -> str:
    """Take the method out of the options, and check that the others go with it."""
    method = options.pop("method", "tracking")
    if not isinstance(method, str) or method not in _METHODS:
        raise ConfigError(f"[stream] has an unknown method {method!r}: {did_you_mean(str(method), _METHODS)}")
    for key in _ONLY_PHDSTREAM if method == "tracking" else ():
        if key in options:
            raise ConfigError(f"{key} is an option of PHDStream: set method = 'phdstream' in [stream], or drop it.")
    return str(method)


def _format(output: dict[str, Any], domain: Domain) -> str:
    try:
        return check_format(a_text(output.get("format", "parquet"), "[output] format"), domain)
    except InputError as error:
        raise ConfigError(f"[output] {error}") from None


def _unit(spec: Any) -> Unit:
    if not isinstance(spec, str | dict):
        raise ConfigError('[privacy] unit must be "event", "record" or { type = "user", inserts = 4, deletes = 4 }.')
    return unit_from_dict({"type": spec} if isinstance(spec, str) else spec)
