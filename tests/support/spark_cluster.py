"""A standalone Spark cluster on loopback, master and workers, from the installed pyspark's jars.

    with SparkCluster(tmp_path, workers=2) as cluster:
        run("pykafkalog", "pipeline", …, *cluster.arguments)
        cluster.kill_worker(0)

Each worker offers one core. A kill ends a worker with its executors and their Python processes, as
the loss of a machine would.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pyspark

from tests.support.ports import free_port
from tests.support.server_process import ForWith
from tests.support.spark_files import spark_environment

START_TIMEOUT_S = 90
HOME = Path(pyspark.__file__).parent


class SparkCluster(ForWith):
    """Master and workers; logs and the executors' directories are in `directory`."""

    def __init__(self, directory: Path, workers: int = 2, memory: str = "1g") -> None:
        self.directory = directory
        self.port = free_port()
        self.memory = memory
        self._numbers = range(workers)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def master(self) -> str:
        """The URL of the master."""
        return f"spark://127.0.0.1:{self.port}"

    @property
    def arguments(self) -> list[str]:
        """Arguments that make a command of the pipeline run on this cluster."""
        settings = (
            "spark.driver.host=127.0.0.1",
            "spark.driver.bindAddress=127.0.0.1",
            "spark.executor.memory=512m",
            "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.shuffle.partitions=2",
        )
        words = [word for setting in settings for word in ("--conf", setting)]
        return ["--master", self.master, *words]

    def start(self) -> "SparkCluster":
        """Start master and workers, and wait until the workers are registered."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._start("master", "master.Master", "--port", str(self.port), "--webui-port", "0")
        self._wait_for("master", "I have been elected leader")
        for number in self._numbers:
            self._launch_worker(number)
        for number in self._numbers:
            self._wait_for(f"worker-{number}", "Successfully registered with master")
        return self

    def start_worker(self, number: int) -> None:
        """Start a worker that was killed."""
        self._launch_worker(number)
        self._wait_for(f"worker-{number}", "Successfully registered with master")

    def kill_worker(self, number: int) -> None:
        """Kill the worker, its executors and their Python processes with SIGKILL."""
        self._kill(f"worker-{number}")

    def runs_python(self, number: int) -> bool:
        """Return whether a task of that worker's executors runs in Python now."""
        return any("pyspark" in " ".join(words) for words in self._commands(number))

    def runs_executor(self, number: int) -> bool:
        """Return whether the worker has an executor."""
        return any(
            "CoarseGrainedExecutorBackend" in " ".join(words) for words in self._commands(number)
        )

    def _commands(self, number: int) -> list[list[str]]:
        found = []
        process = psutil.Process(self._processes[f"worker-{number}"].pid)
        for child in process.children(recursive=True):
            try:
                found.append(child.cmdline())
            except psutil.Error:
                continue
        return found

    def close(self) -> None:
        """Kill all processes that are left."""
        for name in list(self._processes):
            self._kill(name)

    def output(self, name: str) -> str:
        """Return the output of a process since its last start."""
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def _launch_worker(self, number: int) -> None:
        work = self.directory / f"work-{number}"
        self._start(
            f"worker-{number}",
            "worker.Worker",
            *("--cores", "1", "--memory", self.memory, "--webui-port", "0"),
            *("--work-dir", str(work), self.master),
        )

    def _start(self, name: str, main_class: str, *words: str) -> None:
        with (self.directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [
                    *(str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{main_class}"),
                    *("--host", "127.0.0.1", *words),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env={
                    **spark_environment(self.directory),
                    "SPARK_HOME": str(HOME),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                },
                start_new_session=True,
            )

    def _wait_for(self, name: str, words: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while words not in self.output(name):
            assert self._processes[name].poll() is None, self.output(name)[-4000:]
            assert time.monotonic() < deadline, self.output(name)[-4000:]
            time.sleep(0.05)

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name)
        groups = {process.pid}
        if process.poll() is None:
            for child in psutil.Process(process.pid).children(recursive=True):
                # Spark's Python daemon makes a process group of its own.
                try:
                    groups.add(os.getpgid(child.pid))
                except ProcessLookupError:
                    continue
        for group in groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()
