"""`phdstream serve`: a configuration as a running service; several configurations as one."""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from phdstream.account import charge
from phdstream.app.card import card
from phdstream.app.config import Config, load_config
from phdstream.app.prepare import check_said, keep_ledger, ledger_of, said, ticks_of
from phdstream.errors import ConfigError, InputError, PhdstreamError
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.service.settings import ServiceSettings
from phdstream.streams.durable.stream import DurableStream, durable

__all__ = ["open_stream", "reloaded", "serve", "source_of"]

_LOG = logging.getLogger("phdstream.service")
_MAY_CHANGE = ("public", "rate", "body", "memory", "remember", "key_file", "backup", "layer", "tiles")
"""What of [service] a running service takes over; all else needs a restart, or cannot change at all."""


def open_stream(config: Config, new_folder: bool = False) -> tuple[DurableStream, ReleaseFolder]:
    """Open a stream's private folder and its folder of releases, as `run` does. The stream begins, if it has not."""
    asked = config.stream()
    stream = durable(config.state, asked)
    try:
        check_said(stream, config)
        stream.notes["said"] = said(config)
        if not stream.tick:
            keep_ledger(stream, ledger_of(stream))
        about = {"ticks": ticks_of(config)}
        folder = ReleaseFolder(config.releases, stream.id, about, config.format, asked.start_after)
        folder.open(stream.tick, new_folder)
        try:
            charge(config.account, stream)
            stream.begin()
            folder.bind()
        except BaseException:
            folder.close()
            raise
    except BaseException:
        stream.close()
        raise
    return stream, folder


def source_of(config: Config, path: Path) -> Any:
    """Return what `StreamService` serves."""
    from phdstream.service.stream_service import Source

    if config.clock is None:
        raise ConfigError(f"{path}: a service needs [ticks] every and start: ticks close by the clock.")
    asked = config.stream()
    promise = {"epsilon": asked.budget.epsilon, "unit": asked.unit.to_dict(), "private_noise": asked.noise.private}
    return Source(
        open=lambda: open_stream(config),
        state=config.state,
        clock=config.clock,
        columns=config.input.columns,
        reading=config.input.reading,
        settings=config.service,
        about=promise,
        card=None if config.seed is not None else lambda tick: card(config, tick or None),
        reload=lambda: reloaded(config, path),
        sinks={sink.name: sink.open for sink in config.sinks},
        feed=config.source,
    )


def reloaded(config: Config, path: Path) -> ServiceSettings:
    """Return the settings as the file has them now; refuse if anything else has changed."""
    now = load_config(path)
    settings = replace(config.service, **{name: getattr(now.service, name) for name in _MAY_CHANGE})
    if now.service != settings:
        raise InputError(f"only {', '.join(_MAY_CHANGE)} of [service] can change while the service runs: restart it.")
    alike = (now.epsilon, now.unit, now.method, now.options, now.seed, now.clock, now.releases, now.state, now.format)
    before = config.epsilon, config.unit, config.method, config.options, config.seed
    before_too = config.clock, config.releases, config.state, config.format
    if alike != (*before, *before_too) or said(now) != said(config):
        raise InputError("what the stream promises, reads or writes has changed in the file: that cannot be reloaded.")
    if now.sinks != config.sinks:
        raise InputError("sinks have changed in the file: restart the service to take them over.")
    if now.domain.to_dict() != config.domain.to_dict():
        raise InputError("the domain has changed in the file: that cannot be reloaded.")
    return settings


def serve(
    paths: list[Path],
    host: str | None = None,
    port: int | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve streams until told to stop; ``ready`` is told the address once it answers."""
    try:
        import uvicorn

        from phdstream.service.api.app import host as host_app
        from phdstream.service.stream_service import StreamService
    except ImportError as error:
        raise InputError(f"the service needs more ({error.name}): pip install 'phdstream[service]'") from None
    configs = [(load_config(path), path) for path in paths]
    names = [config.service.name for config, _ in configs]
    if len(set(names)) < len(names):
        raise ConfigError("several streams in one service need different names: set [service] name in each.")
    _log_as_json()
    services: list[StreamService] = []
    try:
        for config, path in configs:
            services.append(StreamService(source_of(config, path)))
    except BaseException:
        for service in services:
            service.stop()
        raise
    settings = configs[0][0].service

    class Server(uvicorn.Server):
        """Tells listeners that the service ends before it waits for them to go."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            for service in services:
                service.announcer.close()
            super().handle_exit(sig, frame)

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                bound = self.servers[0].sockets[0].getsockname()
                ready(f"http://{bound[0]}:{bound[1]}/")

    server = Server(
        uvicorn.Config(
            host_app(services), host=host or settings.host, port=settings.port if port is None else port,
            access_log=False, log_config=None, server_header=False, date_header=True, timeout_graceful_shutdown=30,
            timeout_keep_alive=75, limit_concurrency=1000, proxy_headers=True, ws="none",
        )
    )  # fmt: skip
    signal.signal(signal.SIGHUP, lambda sig, frame: _reload(services))
    try:
        server.run()
    except OSError as error:
        raise InputError(f"the service cannot listen there ({error.strerror or error}): choose another port.") from None


def _reload(services: list[Any]) -> None:
    for service in services:
        try:
            service.reload()
            _LOG.info("reloaded", extra={"stream": service.settings.name})
        except PhdstreamError as error:
            _LOG.error("not reloaded", extra={"why": str(error), "stream": service.settings.name})


class _JsonLines(logging.Formatter):
    """One JSON object a line: time, level, what, and what belongs to it. Never a private value or a stack trace."""

    _KNOWN = frozenset(vars(logging.makeLogRecord({})))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line = {"time": when, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        more = {
            name: value for name, value in vars(record).items() if name not in self._KNOWN and name != "color_message"
        }
        if record.exc_info and record.exc_info[0]:
            more["error"] = record.exc_info[0].__name__
        return json.dumps(line | more, default=str, ensure_ascii=False)


def _log_as_json() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    for name in ("phdstream", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
