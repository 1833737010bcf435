"""Real servers for tests: each started from what the machine has, on loopback, at a free port, in a folder of its own.

A test whose server is not installed is skipped and says so; `make services` installs and fetches what is missing.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = [
    "S3", "Kafka", "Postgres", "Redis", "Server", "left_out", "start_kafka", "start_postgres", "start_redis",
]  # fmt: skip

JARS = Path(__file__).parents[1] / ".services"
"""Where `make services` puts what it fetches."""
_PATIENCE = 90.0


def left_out(why: str) -> None:
    """Skip the test for a reason."""
    pytest.skip(f"{why} (`make services` gets what is missing)")


def free_port() -> int:
    """Return a port of loopback that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server(ABC):
    """A server in a folder: started at once, on 127.0.0.1. ``address`` is the same after a restart."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "log.txt"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        """Where it listens: host and port."""
        return f"127.0.0.1:{self.port}"

    @abstractmethod
    def command(self) -> list[str]:
        """Return what starts it in the foreground."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it is ready."""

    def start(self) -> None:
        """Start it, and wait until it answers. What ended at once is tried again: a killed one may still be leaving."""
        until = time.monotonic() + _PATIENCE
        self._process = self._begun()
        while not self.answers():
            if time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"a server did not start: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
            if self._process.poll() is not None:
                time.sleep(0.5)
                self._process = self._begun()

    def _begun(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
            )

    def kill(self) -> None:
        """End it, and all processes it started, as a power cut would: with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in good order; by force if that takes too long."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for each in (how, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, each)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
                return

    def restart(self) -> None:
        """Start it again on the same port with what it had written to the disk."""
        self.kill()
        self.start()

    def _accepts(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


class S3(Server):
    """Moto, which speaks S3; it keeps its objects in memory, and none after a restart."""

    def command(self) -> list[str]:
        """Return what starts it in the foreground."""
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def answers(self) -> bool:
        """Whether it is ready."""
        return self._accepts()


class Redis(Server):
    """Redis that writes every command to the disk before it answers."""

    def command(self) -> list[str]:
        """Return what starts it in the foreground."""
        binary = shutil.which("redis-server")
        assert binary is not None
        return [
            binary, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder), "--save", "",
            "--appendonly", "yes", "--appendfsync", "always",
        ]  # fmt: skip

    def answers(self) -> bool:
        """Whether it is ready (and not still loading)."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as client:
            client.sendall(b"PING\r\n")
            return client.recv(64).startswith(b"+PONG")
        return False

    @property
    def url(self) -> str:
        """Its address as clients take it."""
        return f"redis://{self.address}/0"


class Postgres(Server):
    """PostgreSQL with the database ``postgres``, in which anybody on loopback may do anything."""

    def __init__(self, folder: Path) -> None:
        self._bin = _postgres_folder()
        assert self._bin is not None
        folder.mkdir(parents=True, exist_ok=True)
        self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if self._as:  # it refuses to run as root
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            for parent in folder.parents:
                if parent.owner() == "root" and parent != Path("/tmp") and len(parent.parts) > 2:
                    parent.chmod(parent.stat().st_mode | 0o011)
        self._data = folder / "data"
        done = subprocess.run(
            [*self._as, f"{self._bin}/initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
             "--locale=C.UTF-8", "--no-sync"], capture_output=True, cwd="/", check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stderr.decode(errors='replace')[-2000:]}")
        super().__init__(folder)

    def command(self) -> list[str]:
        """Return what starts it in the foreground."""
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        return [
            *self._as, f"{self._bin}/postgres", "-D", str(self._data), "-p", str(self.port), "-c",
            "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "wal_level=logical",
        ]  # fmt: skip

    def answers(self) -> bool:
        """Whether it is ready."""
        ready = [f"{self._bin}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        return subprocess.run(ready, check=False, capture_output=True).returncode == 0

    def _end(self, how: signal.Signals) -> None:
        super()._end(how)
        if how == signal.SIGKILL:  # its processes have groups of their own, and end once they miss the first
            until = time.monotonic() + 20
            while self._accepts() and time.monotonic() < until:
                time.sleep(0.02)

    @property
    def url(self) -> str:
        """Its address as clients take it."""
        return f"postgresql://postgres@{self.address}/postgres"


class Kafka(Server):
    """A Kafka broker and controller in one (KRaft). Topics come into being when they are asked for, by clients."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._controller = free_port()
        super().__init__(folder)

    def command(self) -> list[str]:
        """Return what starts it in the foreground; the first time its folder is made ready."""
        settings = self.folder / "server.properties"
        if not settings.exists():
            settings.write_text(self._settings())
            subprocess.run(
                [*_java(), "kafka.tools.StorageTool", "format", "--standalone", "-t", "cGhkc3RyZWFtLXRlc3Rz",
                 "-c", str(settings)], check=True, capture_output=True, cwd="/",
            )  # fmt: skip
        return [*_java(), "kafka.Kafka", str(settings)]

    def _settings(self) -> str:
        here, controller = f"127.0.0.1:{self.port}", f"127.0.0.1:{self._controller}"
        given = {
            "process.roles": "broker,controller", "node.id": 1, "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{here},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{here},CONTROLLER://{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.bootstrap.servers": controller, "log.dirs": self.folder / "logs",
            "offsets.topic.replication.factor": 1, "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1, "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1, "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false", "broker.session.timeout.ms": 1500,
            "broker.heartbeat.interval.ms": 300, "log.flush.interval.messages": 1,
        }  # fmt: skip
        return "".join(f"{name}={value}\n" for name, value in given.items())

    def answers(self) -> bool:
        """Whether it is ready: a client is told of the broker."""
        from confluent_kafka.admin import AdminClient

        if not self._accepts():
            return False
        with contextlib.suppress(Exception):
            client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
            return bool(client.list_topics(timeout=2).brokers)
        return False


def _java() -> list[str]:
    return [
        "java", "-Xmx256m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
        "-cp", f"{JARS}/kafka/*",
    ]  # fmt: skip


def _postgres_folder() -> Path | None:
    """Return where PostgreSQL's programs are: Debian keeps them off the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return None if on_path is None else Path(on_path).resolve().parent


def start_redis(folder: Path) -> Redis:
    """Start Redis with its files in a folder; skip the test if there is none."""
    if shutil.which("redis-server") is None:
        left_out("redis-server is not installed")
    return Redis(folder)


def start_postgres(folder: Path) -> Postgres:
    """Start PostgreSQL with its files in a folder; skip the test if there is none."""
    if _postgres_folder() is None:
        left_out("PostgreSQL is not installed")
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        left_out("PostgreSQL cannot be run as root, and setpriv is not installed")
    return Postgres(folder)


def start_kafka(folder: Path) -> Kafka:
    """Start a Kafka broker with its files in a folder; skip the test if there is none."""
    if shutil.which("java") is None:
        left_out("Java is not installed, which Kafka runs on")
    if not list((JARS / "kafka").glob("kafka_2.13-*.jar")):
        left_out("the Kafka broker was not fetched")
    return Kafka(folder)


def running(server: Server) -> Iterator[Server]:
    """Give a server, and end it afterwards: the body of a fixture."""
    try:
        yield server
    finally:
        server.kill()
