"""A child process that runs functions, one at a time, as the broker sees it.

A child is a fresh interpreter with `broker.world.child_program`, joined by a pair of sockets. It is
no fork, which would inherit sockets and locks, and it needs neither threads of the broker nor
shared memory.

Errors are sorted at their origin. An exception that the work raises in the child is raised here.
Every other failure is the machinery's and raises `WorkerDied`: no process or socket, a child that
is killed, modules that cannot be imported, no memory. Then the child has ended, and the next call
starts another one. So an OSError of `call` is the work's own.

A cancelled call kills the child, so even a child that was stopped (SIGSTOP) delays nobody.
"""

import atexit
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

from broker.world import child_program
from broker.world.child_program import FAILED, FRAME, RAISED, Setup, frame
from broker.world.workers import WorkerDied, Workers
from config.form import form_that_runs

Result = TypeVar("Result")

_ROOT: Final = str(Path(__file__).resolve().parents[__name__.count(".")])
"""The directory that the rooms are imported from."""

_started: Final[set["subprocess.Popen[bytes]"]] = set()
"""Processes that were not seen to end yet."""


class Child:
    """One child process at a time, started by the first call. Event loop only."""

    def __init__(
        self, workers: Workers, *, nice: int, most_memory: int = -1, keeps_state: bool = False
    ) -> None:
        """`workers` start the process in a thread; for the others see `Setup`."""
        self._workers = workers
        self._nice = nice
        self._most_memory = most_memory
        self._keeps_state = keeps_state
        self._process: subprocess.Popen[bytes] | None = None
        self._link: trio.SocketStream | None = None

    async def call(self, work: Callable[..., Result], *values: Any) -> Result:
        """Run `work(*values)` in the child; one call at a time. Raises WorkerDied."""
        message = frame((work, values))
        try:
            link = self._link or await self._start()
            await link.send_all(message)
            kind, answer = pickle.loads(await _receive(link))
        except (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.end()
            raise WorkerDied(f"it has died, or could not be started: {error!r}") from error
        except trio.Cancelled:
            await self._kill()
            raise
        if kind == FAILED:
            self.end()
            raise WorkerDied(f"it gave up: {answer}")
        if kind == RAISED:
            raised, where = answer
            raised.add_note(where)
            raise raised
        result: Result = answer
        return result

    async def _start(self) -> trio.SocketStream:
        """Raises OSError."""
        _reap()
        setup = Setup(
            path=_path(),
            nice=self._nice,
            is_compiled=form_that_runs() == "compiled",
            keeps_state=self._keeps_state,
            most_memory=self._most_memory,
        )
        ours, theirs = socket.socketpair()
        self._link = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        with theirs:
            self._process = await self._workers.in_thread(_start_process, theirs.fileno())
        await self._link.send_all(frame(tuple(setup)))
        return self._link

    async def _kill(self) -> None:
        """Kill the child and wait until it does nothing any more."""
        link = self._link
        if self._process is not None:
            self._process.kill()
        if link is not None:
            with trio.CancelScope(shield=True):
                try:
                    while await link.receive_some():
                        pass
                except trio.BrokenResourceError:
                    pass
        self.end()

    def end(self) -> None:
        """Kill the child, if there is one."""
        process, self._process = self._process, None
        link, self._link = self._link, None
        if link is not None:
            link.socket.close()
        if process is not None:
            process.kill()
        _reap()


async def _receive(link: trio.SocketStream) -> bytearray:
    """The next frame. Raises EOFError."""
    (size,) = FRAME.unpack(await _exactly(link, FRAME.size))
    return await _exactly(link, size)


async def _exactly(link: trio.SocketStream, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = await link.socket.recv_into(view)
        if not count:
            raise EOFError("no answer")
        view = view[count:]
    return data


def _start_process(link: int) -> "subprocess.Popen[bytes]":
    """Raises OSError."""
    program = [sys.executable, "-P", str(child_program.__file__)]
    process = subprocess.Popen(program, stdin=link, stdout=subprocess.DEVNULL)
    _started.add(process)
    return process


def _reap() -> None:
    """Let go of the processes that have ended."""
    for process in tuple(_started):
        if process.poll() is not None:
            _started.discard(process)


@atexit.register
def _kill_all() -> None:
    # The others end with their sockets, but one that is stopped would never notice.
    for process in _started:
        process.kill()
        process.wait()


def _path() -> list[str]:
    """This process' `sys.path` without the current folder, where strangers may have put modules."""
    path = [entry for entry in sys.path if entry == _ROOT or not _is_here(entry)]
    return path if _ROOT in path else [*path, _ROOT]


def _is_here(entry: str) -> bool:
    try:
        return not entry or os.path.samefile(entry, os.curdir)
    except OSError:  # one of them does not exist
        return False
