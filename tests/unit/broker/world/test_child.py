"""A child process and what may befall it: machinery that fails is never an error of the work."""

import errno
import mmap
import os
import signal
import subprocess
import sys
import threading
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from broker.world import child
from broker.world.machine import MOST_MEMORY, MachineWorkers
from broker.world.workers import WorkerDied
from protocol.records.effort import Effort
from tests.support.driving import close
from tests.support.installation import CHECKOUT
from tests.support.waiting import wait_until


def pid() -> int:
    return os.getpid()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_first(marker: Path) -> int:
    if not marker.exists():
        marker.touch()
        die()
    return os.getpid()


def fail(error: BaseException) -> None:
    raise error


def keep(state: dict[str, Any], value: object) -> object:
    return state.setdefault("kept", value)


def wait_for(path: Path, word: str) -> None:
    """Write, and wait for a writer that never comes."""
    path.with_suffix(".begun").write_text(word)
    with path.open() as never:
        never.read()


def lend(state: dict[str, Any], size: int) -> int:
    """Address space that is not used."""
    return len(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def take(size: int) -> int:
    return len(bytearray(size))


def limits() -> tuple[str, bytes]:
    """How readily the kernel ends this process when memory is short; what its input says."""
    return Path("/proc/self/oom_score_adj").read_text().strip(), os.read(0, 1)


def modules() -> list[str | None]:
    import numpy  # noqa: F401

    return [getattr(module, "__file__", None) for module in sys.modules.values()]


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EPIPE])
def test_a_process_that_cannot_be_started_is_no_failure_of_a_disk(
    machine: MachineWorkers, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    asked = []

    def none(*args: object, **kwargs: object) -> None:
        asked.append(args)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", none)
        with pytest.raises(WorkerDied):
            trio.run(machine.in_process, pid)
        with pytest.raises(WorkerDied):
            trio.run(machine.dedicated_worker().call, keep, 1)
    assert len(asked) == 3  # the shared child is tried twice; a worker's state would be lost
    assert trio.run(machine.in_process, pid) != os.getpid()


def test_sockets_that_cannot_be_had_are_no_failure_of_a_disk(
    machine: MachineWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        with monkeypatch.context() as patched:
            none = OSError(errno.EMFILE, "none left")
            patched.setattr(child.socket, "socketpair", lambda: fail(none))
            await machine.in_process(pid)

    with pytest.raises(WorkerDied):
        trio.run(main)
    assert trio.run(machine.in_process, pid) != os.getpid()


def test_what_a_disk_does_to_the_work_is_an_error_of_the_work(machine: MachineWorkers) -> None:
    with pytest.raises(OSError) as told:
        trio.run(machine.in_process, fail, OSError(errno.EIO, "broken"))
    assert told.value.errno == errno.EIO
    assert "in fail" in "".join(told.value.__notes__)


@pytest.mark.parametrize("error", [MemoryError("no"), ImportError("cannot map numpy")])
def test_no_memory_and_modules_that_cannot_be_imported_are_the_machinery(
    machine: MachineWorkers, error: Exception
) -> None:
    first = trio.run(machine.in_process, pid)
    with pytest.raises(WorkerDied):
        trio.run(machine.in_process, fail, error)
    assert trio.run(machine.in_process, pid) != first


def test_a_child_that_is_killed_over_the_work_is_followed_by_another(
    machine: MachineWorkers, tmp_path: Path
) -> None:
    first = trio.run(machine.in_process, pid)
    second = trio.run(machine.in_process, die_at_first, tmp_path / "marker")
    assert second not in (first, os.getpid())
    os.kill(second, signal.SIGKILL)  # while it has nothing to do
    assert trio.run(machine.in_process, pid) != second


def test_two_children_that_are_killed_are_told_of(machine: MachineWorkers) -> None:
    with pytest.raises(WorkerDied):
        trio.run(machine.in_process, die)
    assert trio.run(machine.in_process, pid) != os.getpid()


@pytest.mark.parametrize("stop", [False, True], ids=["working", "stopped"])
@pytest.mark.usefixtures("loop")
async def test_a_cancelled_caller_does_not_wait_for_the_child(
    machine: MachineWorkers, tmp_path: Path, stop: bool
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    number = await machine.in_process(pid)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(machine.in_process, wait_for, pipe, "x")
            while not pipe.with_suffix(".begun").exists():
                await trio.sleep(0.001)
            if stop:
                os.kill(number, signal.SIGSTOP)
            nursery.cancel_scope.cancel()
        assert await machine.in_process(pid) != number
    wait_until(lambda: state_of(number) in ("gone", "Z"), 20)


def test_a_stopped_child_does_not_outlive_its_owner(machine: MachineWorkers) -> None:
    number = trio.run(machine.in_process, pid)
    os.kill(number, signal.SIGSTOP)
    trio.run(close, machine)
    wait_until(lambda: state_of(number) in ("gone", "Z"), 20)


def test_a_child_ends_with_a_broker_that_is_killed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = (
        "import sys, trio\n"
        "from pathlib import Path\n"
        "from broker.world.machine import MOST_MEMORY, MachineWorkers\n"
        "from tests.unit.broker.world.test_child import pid, wait_for\n"
        "async def main(workers):\n"
        "    print(await workers.in_process(pid), flush=True)\n"
        "    await workers.in_process(wait_for, Path(sys.argv[1]), 'x')\n"
        "trio.run(main, MachineWorkers())\n"
    )
    broker = subprocess.Popen(
        [sys.executable, "-c", program, str(pipe)], stdout=subprocess.PIPE, cwd=CHECKOUT.directory
    )
    with broker:
        assert broker.stdout is not None
        number = int(broker.stdout.readline())
        broker.kill()
    wait_until(lambda: state_of(number) in ("gone", "Z"), 20)


def test_strangers_modules_in_the_current_folder_are_not_imported(
    machine: MachineWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy", "queue", "pickle", "socket", "storage", "broker"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a stranger')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = trio.run(machine.in_process, modules)
    assert [path for path in found if path and path.startswith(str(tmp_path))] == []


def test_a_child_runs_the_form_of_its_broker(machine: MachineWorkers) -> None:
    """In the compiled suite as in the other: a pickle of one form is none of the other."""
    effort = Effort(bytes=5, steps=3)
    assert trio.run(machine.in_process, attrgetter("bytes", "steps"), effort) == (5, 3)


def test_a_child_needs_no_shared_memory_and_no_other_process(machine: MachineWorkers) -> None:
    """A full /dev/shm cannot harm what does not use it."""
    before, shared = children(), set(os.listdir("/dev/shm"))
    number = trio.run(machine.in_process, pid)
    assert children() - before == {number}
    assert set(os.listdir("/dev/shm")) <= shared


def test_the_memory_of_the_shared_child_is_bounded_and_that_of_a_hand_is_not(
    machine: MachineWorkers,
) -> None:
    first = trio.run(machine.in_process, pid)
    with pytest.raises(WorkerDied, match="MemoryError"):
        trio.run(machine.in_process, take, MOST_MEMORY)
    assert trio.run(machine.in_process, pid) != first
    assert trio.run(machine.in_process, take, MOST_MEMORY // 2) == MOST_MEMORY // 2
    worker = machine.dedicated_worker()
    assert trio.run(worker.call, lend, MOST_MEMORY) == MOST_MEMORY
    trio.run(close, worker)


def test_a_child_is_ended_before_the_broker_when_memory_is_short(machine: MachineWorkers) -> None:
    assert trio.run(machine.in_process, limits) == ("1000", b"")


def test_work_for_which_no_thread_can_be_had_is_done_on_the_loop(
    machine: MachineWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*args: object, **kwargs: object) -> None:
        raise RuntimeError("can't start new thread")

    limiter = trio.CapacityLimiter(1)

    async def main() -> tuple[int, float]:
        found = await machine.in_thread(threading.get_ident, limiter=limiter)
        return found, limiter.borrowed_tokens

    with monkeypatch.context() as patched:
        patched.setattr("trio._threads.start_thread_soon", none)
        assert trio.run(main) == (threading.get_ident(), 0)
    assert trio.run(main)[0] != threading.get_ident()


def test_a_runtime_error_of_the_work_is_raised_and_the_work_not_repeated(
    machine: MachineWorkers,
) -> None:
    calls = []

    def broken() -> None:
        calls.append(1)
        raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError):
        trio.run(machine.in_thread, broken)
    assert calls == [1]


# ---- processes


def state_of(number: int) -> str:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"


def children() -> set[int]:
    return {
        int(word)
        for task in Path("/proc/self/task").iterdir()
        for word in (task / "children").read_text().split()
        if state_of(int(word)) != "Z"
    }
