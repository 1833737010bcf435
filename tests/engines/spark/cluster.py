"""A real standalone Spark cluster on loopback: a master and two workers, from the pip package."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.servers import JARS, left_out
from tests.waiting import wait_until

ONLY_HERE = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1", "PYSPARK_PYTHON": sys.executable}


def need_spark() -> None:
    """Skip where Spark cannot run."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        left_out("Java is not installed, which Spark runs on")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def properties_of(cluster: Cluster) -> dict[str, str]:
    """Return the settings of a session: one core of each worker, so that another driver finds room beside it."""
    return {
        "spark.executor.memory": "700m",
        "spark.executor.cores": "1",
        "spark.cores.max": str(len(cluster.workers)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.jars": ",".join(map(str, sorted((JARS / "spark-kafka").glob("*.jar")))),
    }


def stalling(frame: Any, mark: Path) -> Any:
    """Return a frame with the same rows, of which one task stalls for ever: when it has given all its rows, it writes
    the number of its process to a file. If that is there, none does.
    """

    def rows(batches: Any) -> Any:
        import os
        import time

        yield from batches
        try:
            handle = os.open(str(mark), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return
        os.write(handle, f"{os.getpid()}\n".encode())
        os.close(handle)
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.05)

    return frame.mapInArrow(rows, frame.schema)


class Cluster:
    """Master and workers as processes of their own; a worker can be killed and started again."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        import pyspark

        self._home, self._folder, self._port = Path(pyspark.__file__).parent, folder, free_port()
        self.url = f"spark://127.0.0.1:{self._port}"
        place = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0"]
        self._master = self._start("master.Master", *place)
        self._await_master()
        self.workers = [self._worker(number) for number in range(workers)]

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{kind}.log").open("ab")
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        environment = os.environ | ONLY_HERE
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def _await_master(self) -> None:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                return
            time.sleep(0.2)
        raise RuntimeError("the Spark master did not start")

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        room = ["--cores", "2", "--memory", "2g", "--work-dir", str(self._folder / f"work-{number}")]
        return self._start("worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", *room, self.url)

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors with -9, and start another in its place."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait()
        self.workers[number] = self._worker(number)

    def worker_of(self, process: int) -> int:
        """Return the number of the worker that a process, some generations on, is a child of."""
        numbers = {worker.pid: number for number, worker in enumerate(self.workers)}
        while process not in numbers:
            process = int(Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()[1])
        return numbers[process]

    def kill_in_the_middle(self, mark: Path, frame: Any, work: Any) -> Any:
        """Do some work on a frame, and kill the worker of one of its tasks before that has ended."""

        def kill() -> None:
            wait_until(lambda: mark.exists() and mark.read_text().endswith("\n"), 600)
            self.kill_worker(self.worker_of(int(mark.read_text())))

        with ThreadPoolExecutor() as pool:
            killer = pool.submit(kill)
            answer = work(stalling(frame, mark))
            killer.result()
        return answer

    def stop(self) -> None:
        for process in (*self.workers, self._master):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
