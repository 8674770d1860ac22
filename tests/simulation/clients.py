"""The clients of a simulated run, each with a clock of its own: one incarnation after the other.

They may be killed, paused, or left behind as zombies while a successor has begun.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

import trio

from tests.anomalies.history import Event
from tests.anomalies.workload import roles
from tests.anomalies.workload.clients import GivenUp, MustAbort
from tests.anomalies.workload.raw import RawProducer
from tests.simulation.offsets import GroupLedger
from tests.simulation.plan import Member, Plan
from tests.simulation.readers import AssignedReader, MemberReader
from tests.simulation.trace import Trace
from tests.simulation.wire import Network
from tests.support.virtual_time import Timeline, VirtualClock

CRASH_WITHIN_S: Final = 0.004
SESSION_MS: Final = 1500
HANGS: Final = 0.15
"""The share of its commits with which a member of a group may come late (`MemberReader`)."""
_AGAIN_S: Final = 0.1


class Stage:
    """The things that clients share. In `history` each event is a moment later than the last."""

    def __init__(
        self, plan: Plan, timeline: Timeline, network: Network, trace: Trace, nursery: trio.Nursery
    ) -> None:
        self.plan = plan
        self.timeline = timeline
        self.network = network
        self.trace = trace
        self.nursery = nursery
        self.history: list[Event] = []
        self.ledger = GroupLedger()
        self.is_going = True
        self.failures: list[BaseException] = []
        self.failed = trio.Event()
        self._last_time = 0

    def note(
        self, process: str, f: str, kind: str, op: int = -1, more: Mapping[str, Any] | None = None
    ) -> None:
        """Add an event to the history, with the time of now."""
        self._last_time = max(self._last_time + 1, int(self.timeline.now * 1e9))
        event = Event(time=self._last_time, process=process, f=f, type=kind, op=op, more=more or {})
        self.history.append(event)
        self.trace.note(process, f"{f} {kind} {op if op >= 0 else ''} {dict(event.more)}")

    def fail(self, error: BaseException) -> None:
        """Note a failure, which ends the run."""
        self.failures.append(error)
        self.failed.set()


class Notes:
    """The notes of one incarnation; a `roles.Notes`."""

    def __init__(self, stage: Stage, process: str) -> None:
        self._stage = stage
        self._process = process
        self._ops = 0

    def note(self, f: str, kind: str, *, op: int = -1, **more: Any) -> None:
        """See `roles.Notes`."""
        # The client changes its `acks` later, the note must not change.
        copied = {name: dict(value) if name == "acks" else value for name, value in more.items()}
        self._stage.note(self._process, f, kind, op, copied)

    def next_op(self) -> int:
        """See `roles.Notes`."""
        self._ops += 1
        return self._ops


class Incarnation:
    """One life of a client."""

    def __init__(self, stage: Stage, member: Member, number: int) -> None:
        self.name = f"{member.name}.{number}"
        self.clock = VirtualClock(stage.timeline)
        self.is_over = False
        self.is_paused = False
        self._stage = stage
        self._member = member
        self._scope = trio.CancelScope()
        self._random = Random(f"{stage.plan.seed} {self.name}")
        self._wire = stage.network.wire(self.name, self.clock, self._random)
        self._stretch = stage.plan.pace / 12

    async def run(self) -> None:
        """Play its role until the run ends, or until it gives up or dies."""
        try:
            with self._scope:
                await self._play()
        except (GivenUp, MustAbort) as why:
            self._stage.trace.note(self.name, f"gave up: {why}")
        except Exception as error:  # noqa: BLE001 - the run reports it, with its seed
            self._stage.fail(error)
        finally:
            self.is_over = True
            self._wire.close()

    def kill(self) -> None:
        """Kill it at once: reset its connection; it notes nothing any more."""
        self._scope.cancel()
        self._wire.abort()

    def pause(self) -> None:
        """Stop it as SIGSTOP does."""
        self.is_paused = True
        self.clock.stop()

    def resume(self) -> None:
        """Continue it as SIGCONT does."""
        self.is_paused = False
        self.clock.go_on()

    # ---- what it does

    async def _play(self) -> None:
        member, wire, random = self._member, self._wire, self._random
        notes = Notes(self._stage, self.name)
        life = roles.Life(notes, random, self._goes, self._pause, self._crash_soon)

        def moved(to: Sequence[str]) -> None:
            notes.note("assign", "ok", value=sorted(to))

        if member.role == "poller":
            await roles.poller(await self._poller(moved), life, member=member.subscribe)
            return
        producer = await RawProducer(
            wire, member.name, version=member.version, transaction_timeout_ms=member.timeout_ms
        ).open()
        transactions = roles.Transactions(producer, life, member.name)
        values = roles.Values(self.name)
        if member.role == "sender":
            await roles.sender(transactions, life, values, member.keys)
            return
        # Readers have a connection of their own, as in every client library.
        reading = self._stage.network.wire(self.name, self.clock, random)
        try:
            if member.role == "mixer":
                mixed = AssignedReader(reading, random, member.inputs, moved, stretch=self._stretch)
                reader = await mixed.open()
                await roles.mixer(transactions, reader, life, values, member.keys)
            else:
                await self._copy(transactions, producer, life, values, moved, reading)
        finally:
            reading.close()

    async def _poller(self, moved: Callable[[Sequence[str]], None]) -> roles.PollingReader:
        member = self._member
        if not member.subscribe:
            return await AssignedReader(
                self._wire, self._random, member.keys, moved, stretch=self._stretch
            ).open()
        return self._member_reader(self._wire, member.keys, moved, commits=True)

    def _member_reader(
        self,
        wire: Any,
        keys: Sequence[str],
        moved: Callable[[Sequence[str]], None],
        *,
        commits: bool,
    ) -> MemberReader:
        """`commits` False: it sends its offsets in transactions."""
        return MemberReader(
            wire,
            self._random,
            keys,
            moved,
            group=self._member.group,
            who=self.name,
            ledger=self._stage.ledger,
            stretch=self._stretch,
            keeps_ledger=commits,
            session_ms=SESSION_MS,
            hangs=HANGS if commits else 0.0,
        )

    async def _copy(
        self,
        transactions: roles.Transactions,
        producer: RawProducer,
        life: roles.Life,
        values: roles.Values,
        moved: Callable[[Sequence[str]], None],
        wire: Any,
    ) -> None:
        member = self._member
        reader: Any
        if member.subscribe:
            reader = self._member_reader(wire, member.inputs, moved, commits=False)
        else:
            # The transactional id was taken over before: the last owner's transaction is decided.
            assigned = AssignedReader(
                wire,
                self._random,
                member.inputs,
                moved,
                group=member.group,
                stretch=self._stretch,
            )
            reader = await assigned.open(from_committed=True)

        async def send_offsets(offsets: Mapping[str, int]) -> None:
            if member.subscribe:
                await producer.send_offsets(
                    member.group,
                    offsets,
                    member_id=reader.member_id,
                    generation=reader.generation,
                )
            else:
                await producer.send_offsets(member.group, offsets)

        await roles.copier(
            transactions, reader, send_offsets, life, values, member.keys, member.group
        )

    def _goes(self) -> bool:
        return self._stage.is_going

    async def _pause(self, seconds: float) -> None:
        await self.clock.sleep(seconds * self._stage.plan.pace)

    def _crash_soon(self) -> None:
        async def crash() -> None:
            await self.clock.sleep(self._random.uniform(0, CRASH_WITHIN_S))
            self.kill()

        self._stage.nursery.start_soon(crash)


class Client:
    """A member through all its incarnations; a new one begins when one has ended."""

    def __init__(self, stage: Stage, member: Member) -> None:
        self.member = member
        self.incarnations: list[Incarnation] = []
        self._stage = stage

    @property
    def current(self) -> Incarnation | None:
        """The last incarnation, if it lives."""
        last = self.incarnations[-1] if self.incarnations else None
        return None if last is None or last.is_over else last

    def begin(self) -> None:
        """Begin another incarnation, whether or not the last one lives."""
        incarnation = Incarnation(self._stage, self.member, len(self.incarnations) + 1)
        self.incarnations.append(incarnation)
        self._stage.nursery.start_soon(self._live, incarnation)

    async def _live(self, incarnation: Incarnation) -> None:
        """Run it to its end; then begin another one, unless one lives or the run is over."""
        await incarnation.run()
        await self._stage.network.clock.sleep(_AGAIN_S)
        if self._stage.is_going and self.current is None:
            self.begin()
