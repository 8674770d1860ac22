"""The simulated broker: the real `BrokerServer`, started again and again on one disk and port.

A kill leaves all that was written. After a power loss the disk draws what is left. Tasks of a dead
broker may still run to their ends: their disk refuses every operation, and their connections are
closed.
"""

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

import trio

from broker.server import BrokerServer
from broker.world.journal_medium import JournalMedia
from broker.world.world import World
from config.broker_config import BrokerConfig
from storage.paths import parent_dir
from tests.simulation.disk import SimulatedDisk, Strike, disk_error, is_dead
from tests.simulation.plan import Plan
from tests.simulation.trace import Trace
from tests.simulation.wire import HOST, PORT, Network
from tests.simulation.workers import SlowWorkers
from tests.support.memory_transport import MemoryTransport
from tests.support.virtual_time import START_WALL_MS, Timeline, VirtualClock

DIRECTORIES: Final = ("/a", "/b")
_SETTINGS: Final = {
    "broker.id": "1",
    "listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "log.dirs": ",".join(DIRECTORIES),
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "num.io.threads": "2",
    "background.threads": "2",
}


MOST_CHANGES: Final = 20
"""Operations of the disk until a kill or power loss strikes: a few appends, or part of a start."""


class BrokerFailed(AssertionError):
    """The broker failed for no injected fault: by a bug, or at a start on a sound disk."""


class Life:
    """One process of the broker, from its start to its end."""

    def __init__(self, lives: "Lives", number: int) -> None:
        self.number = number
        self.clock = VirtualClock(lives.timeline, wall_ms=START_WALL_MS + lives.wall_shift_ms)
        self.transport = MemoryTransport(lives.network.ports)
        self.scope = trio.CancelScope()
        self.started = trio.Event()
        self.ended = trio.Event()
        self.is_killed = False
        random = Random(f"{lives.plan.seed} broker {number}")
        self.server = BrokerServer(
            BrokerConfig.parse({**_SETTINGS, **lives.plan.settings}),
            World(
                clock=self.clock,
                fs=lives.disk,
                random=random,
                transport=self.transport,
                media=JournalMedia(lives.disk),
                workers=SlowWorkers(self.clock, random),
            ),
            on_started=self.started.set,
        )

    async def run(self) -> bool:
        """Run until it is stopped, killed or fails; return whether it ended well."""
        try:
            with self.scope:
                return await self.server.run()
            return self.is_killed
        finally:
            self.ended.set()

    def kill(self) -> None:
        """End it at once, as SIGKILL does."""
        self.is_killed = True
        self.transport.kill()
        self.scope.cancel()


class Lives:
    """The broker of a simulated world: started, stopped, killed and started again."""

    def __init__(
        self,
        plan: Plan,
        timeline: Timeline,
        network: Network,
        trace: Trace,
        nursery: trio.Nursery,
    ) -> None:
        self.plan = plan
        self.timeline = timeline
        self.network = network
        self.trace = trace
        self.wall_shift_ms = 0
        self.random = Random(f"{plan.seed} disk")
        self.disk = SimulatedDisk(self._wall_ms, self.random)
        for directory in DIRECTORIES:
            self.disk.make_dirs(directory)
            self.disk.fsync_dir("/")
        self.current: Life | None = None
        self.count = 0
        self._nursery = nursery
        self._broken = ""

    def _wall_ms(self) -> int:
        return START_WALL_MS + int(self.timeline.now * 1000) + self.wall_shift_ms

    # ---- life and death

    def start(self) -> None:
        """Start the broker, unless it runs."""
        if self.current is None:
            self.count += 1
            self.trace.note("broker", f"life {self.count} begins")
            self.current = Life(self, self.count)
            self._nursery.start_soon(self._live, self.current)

    async def _live(self, life: Life) -> None:
        went_well = await life.run()
        self.trace.note("broker", f"life {life.number} has ended")
        if life.is_killed:
            return
        if self.current is life:
            self.current = None
        life.transport.kill()
        if not went_well:
            failure = life.server.failure or "it ended badly"
            if "bug" in failure or not self._broken:
                raise BrokerFailed(f"life {life.number}: {failure}")
            self.trace.note("broker", f"gave up: {failure}")
        # It closed its files in order, so its successor gets the disk as it is.
        self.disk = self.disk.after_kill()
        self._obstruct()

    def kill(self) -> None:
        """Kill the broker as SIGKILL does."""
        if self.current is not None:
            self.trace.note("broker", "killed")
            self._die()
            self.disk = self.disk.after_kill()
            self._obstruct()

    def lose_power(self) -> None:
        """Stop the machine: what was not synced may be lost."""
        self.trace.note("broker", "power lost")
        self._die()
        self.disk = self.disk.after_kill().after_power_loss(self.random)
        self._obstruct()

    async def strike(self, end: Callable[[], None], pick: float, within_s: float) -> None:
        """`kill` or `lose_power` during an operation of the broker's disk, within `within_s`.

        The operation is an append to a log, or any change.
        """
        struck = trio.Event()

        def stop() -> None:
            # Nothing that the broker sends arrives any more: the rest of its turn has no effect.
            if life is not None:
                life.is_killed = True
                life.transport.kill()
            disk.failure = is_dead
            struck.set()

        life, disk = self.current, self.disk
        number = int(pick * MOST_CHANGES)
        suffix = (".log", "")[number % 2]
        disk.strike = Strike(number // 2, suffix, stop)
        with VirtualClock(self.timeline).timeout(within_s):
            await struck.wait()
        disk.strike = None
        if self.disk is disk:
            end()

    def _die(self) -> None:
        life, self.current = self.current, None
        if life is not None:
            life.clock.go_on()
            life.kill()

    async def stop(self) -> None:
        """Stop the broker as SIGTERM does, and wait until it has ended."""
        life = self.current
        if life is not None:
            self.trace.note("broker", "asked to stop")
            life.server.request_shutdown()
            await life.ended.wait()

    def pause(self) -> None:
        """Pause the broker as SIGSTOP does."""
        if self.current is not None:
            self.trace.note("broker", "paused")
            self.current.transport.freeze()
            self.current.clock.stop()

    def go_on(self) -> None:
        """Let it go on as SIGCONT does."""
        if self.current is not None:
            self.trace.note("broker", "goes on")
            self.current.transport.thaw()
            self.current.clock.go_on()

    def shift_wall(self, milliseconds: int) -> None:
        """Correct the broker's wall clock."""
        self.trace.note("broker", f"wall clock moved by {milliseconds} ms")
        self.wall_shift_ms += milliseconds
        if self.current is not None:
            self.current.clock.shift_wall(milliseconds)

    # ---- the disk

    def break_disk(self, directory: str) -> None:
        """Fail every read and write below `directory`."""
        self.trace.note("broker", f"disk {directory} breaks")
        self._broken = directory
        self._errno = errno.EIO
        self._obstruct()

    def fill_disk(self, directory: str) -> None:
        """Fail every write that needs more space below `directory`."""
        self.trace.note("broker", f"disk {directory} is full")
        self._broken = directory
        self._errno = errno.ENOSPC
        self._obstruct()

    def heal_disk(self) -> None:
        """End the disk's failures. The broker uses a failed directory only after a restart."""
        self._broken = ""
        self.disk.failure = None

    def _obstruct(self) -> None:
        if not self._broken:
            return
        broken, code = self._broken, self._errno
        writes = ("pwrite", "pwritev", "allocate") if code == errno.ENOSPC else None

        def failure(operation: str, path: str) -> OSError | None:
            if not (path == broken or path.startswith(broken + "/")):
                return None
            return disk_error(code, path) if writes is None or operation in writes else None

        self.disk.failure = failure

    # ---- looking inside

    def check_logs(self) -> None:
        """Check the invariants of every log of an idle broker. Raises AssertionError."""
        life = self.current
        assert life is not None
        for log in life.server.log_manager.all_logs():
            log._check()
            assert parent_dir(log.dir) in DIRECTORIES


def _is_of_the_dead(error: BaseException | None) -> bool:
    """Whether the error is of a dead broker, whose disk now belongs to a later one."""
    while error is not None:
        if isinstance(error, OSError) and error.errno == errno.ESHUTDOWN:
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def bugs_told(told: list[str]) -> Iterator[None]:
    """In this context, keep in `told` what the broker logs with a traceback."""

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            if error is not None and not _is_of_the_dead(error):
                told.append(self.format(record))

    handler = Keeping(logging.ERROR)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    root = logging.getLogger()
    level, handlers, root.handlers = root.level, root.handlers, [handler]
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
