"""The client processes of a run: started, killed, stopped, replaced, ended."""

import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Final

from tests.anomalies.workload.crowd import Member
from tests.support.installation import ROOT

TICK_S: Final = 0.05
STOP_S: Final = 12.0
"""The time that clients may take to finish their last transaction."""


class _Client:
    """A member and its processes: the current one, and zombies."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.incarnation = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.is_paused = False


class ClientProcesses:
    """All members of a crowd. A part of the `Stage` of a nemesis; several threads may use it."""

    def __init__(
        self, directory: Path, history: Path, crowd: Sequence[Member], bootstrap: str, seed: int
    ) -> None:
        self._history = history
        self._bootstrap = bootstrap
        self._seed = seed
        self._clients = {member.name: _Client(member) for member in crowd}
        self._all: list[subprocess.Popen[bytes]] = []
        self._output = (directory / "clients.out").open("ab")
        self._lock = threading.RLock()
        self._is_over = False

    @property
    def incarnations(self) -> int:
        """The number of processes so far."""
        return len(self._all)

    @property
    def transactional(self) -> list[Member]:
        """Members whose name is a transactional id."""
        return [each.member for each in self._clients.values() if each.member.has_transactions]

    def keep_alive(self) -> None:
        """Begin a new incarnation of each client whose process has ended, for whatever reason."""
        with self._lock:
            if self._is_over:
                return
            for client in self._clients.values():
                if client.process is None or client.process.poll() is not None:
                    self._begin(client)

    def pick(self, random: Random, *, transactional: bool) -> str | None:
        """Return the name of one that runs; None if there is none."""
        names = [
            name
            for name, client in self._clients.items()
            if client.process is not None
            and client.process.poll() is None
            and not client.is_paused
            and (client.member.has_transactions or not transactional)
        ]
        return random.choice(names) if names else None

    def kill(self, name: str) -> None:
        """Kill its process by SIGKILL; `keep_alive` begins a new one."""
        process = self._clients[name].process
        if process is not None:
            process.kill()
            process.wait()

    def pause(self, name: str) -> int | None:
        """Stop its process by SIGSTOP; return the process id, None if there is none."""
        client = self._clients[name]
        if client.process is None or client.process.poll() is not None:
            return None
        client.process.send_signal(signal.SIGSTOP)
        client.is_paused = True
        return client.process.pid

    def resume(self, pid: int) -> None:
        """Continue a process by SIGCONT. A zombie works until it notices that it is fenced."""
        for process in self._all:
            if process.pid == pid and process.poll() is None:
                process.send_signal(signal.SIGCONT)
        for client in self._clients.values():
            if client.process is not None and client.process.pid == pid:
                client.is_paused = False

    def replace(self, name: str) -> None:
        """Begin a new incarnation while the last one still lives."""
        with self._lock:
            self._begin(self._clients[name])

    def stop(self) -> None:
        """Let each finish its last transaction, and kill those that do not. None begins again."""
        with self._lock:
            self._is_over = True
        running = [process for process in self._all if process.poll() is None]
        for process in running:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        _wait_for(running, STOP_S)
        self.kill_all()

    def kill_all(self) -> None:
        """Kill all processes; none begins again."""
        with self._lock:
            self._is_over = True
        for process in self._all:
            if process.poll() is None:
                process.kill()
                process.wait()

    def close(self) -> None:
        """Kill all and close their output."""
        self.kill_all()
        self._output.close()

    def _begin(self, client: _Client) -> None:
        client.incarnation += 1
        client.is_paused = False
        job = client.member.job(
            incarnation=client.incarnation,
            bootstrap=self._bootstrap,
            history=str(self._history),
            seed=self._seed,
        )
        client.process = subprocess.Popen(
            [*client.member.command(), job.as_argument()],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._all.append(client.process)


def _wait_for(processes: Iterable[subprocess.Popen[bytes]], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(each.poll() is None for each in processes):
        time.sleep(TICK_S)
