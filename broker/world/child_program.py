"""The program of a child process (`broker.world.child`): runs the calls that it gets, one by one.

It is run by its path, and imports only the standard library, so a child is small and starts
quickly; the work brings its own imports. Nothing of the current folder is imported.

Over the socket on standard input come, as frames (eight bytes of size, then a pickle), a `Setup`,
then calls (function, arguments). Each call is answered with a frame (kind, value):

  RETURNED   its result
  RAISED     the exception that the work raised, and its traceback as text
  FAILED     a sentence: there was no memory, or the work's modules could not be imported

The child ends with the socket, even in the middle of a call: a thread reads from it, and ends the
process when the broker is gone.
"""

import os
import pickle
import signal
import socket
import struct
import sys
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple

FRAME: Final = struct.Struct(">Q")
RETURNED, RAISED, FAILED = range(3)


class Setup(NamedTuple):
    """The values that a child begins with; sent as a plain tuple."""

    path: list[str]
    """The child's `sys.path`."""
    nice: int
    is_compiled: bool
    """Whether its hot modules are compiled: a pickle of one form is none of the other."""
    keeps_state: bool
    """Whether each function gets the child's own state, a dict, as its first argument."""
    most_memory: int
    """Bytes of data that the process may have, -1 for any; work that needs more has no memory."""


def frame(value: object) -> bytes:
    """A frame with `value`."""
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return FRAME.pack(len(body)) + body


def main() -> None:
    """Serve calls until the socket closes."""
    for number in (signal.SIGINT, signal.SIGTERM):  # for the whole process group: the broker's
        signal.signal(number, signal.SIG_IGN)
    link = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    frames: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(link, frames), daemon=True).start()
    setup = Setup(*pickle.loads(frames.get()))
    _begin(setup)
    before: tuple[Any, ...] = ({},) if setup.keeps_state else ()
    while True:
        link.sendall(_answer(frames.get(), before))


def _begin(setup: Setup) -> None:
    import resource

    sys.path[:] = setup.path
    if setup.is_compiled:
        from config.form import choose_form

        choose_form()
    os.nice(setup.nice)
    resource.setrlimit(resource.RLIMIT_DATA, (setup.most_memory, setup.most_memory))
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")  # if memory runs out, the kernel ends the child, not the broker
    except OSError:
        pass


def _answer(call: bytes, before: tuple[Any, ...]) -> bytes:
    """The frame that answers a call. Keeps nothing of it."""
    try:
        try:
            work, values = pickle.loads(call)
        except Exception as error:  # noqa: BLE001 - files of the program that cannot be read
            return frame((FAILED, f"its program could not be loaded: {error!r}"))
        return frame((RETURNED, work(*before, *values)))
    except (MemoryError, ImportError) as error:
        return frame((FAILED, repr(error)))
    except Exception as error:  # noqa: BLE001 - the caller's to judge
        import traceback

        return frame((RAISED, (error, traceback.format_exc())))


def _receive(link: socket.socket, frames: "SimpleQueue[bytes]") -> None:
    try:
        with link.makefile("rb") as stream:
            while head := stream.read(FRAME.size):
                frames.put(stream.read(FRAME.unpack(head)[0]))
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
