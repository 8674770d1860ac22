"""One run from one seed: clients and faults for some virtual seconds, a last read, the checks."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import trio
import trio._core._run as trio_loop

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.anomalies import log_ends
from tests.anomalies.checker import check
from tests.anomalies.faults.plan import NO_FAULTS
from tests.anomalies.findings import Report
from tests.anomalies.workload.raw import RawProducer
from tests.simulation.clients import Client, Incarnation, Stage
from tests.simulation.lives import DIRECTORIES, Lives, bugs_told
from tests.simulation.plan import ALL, TOPICS, Event, Kind, Plan
from tests.simulation.readers import Fetcher, GroupOffsets, persistent
from tests.simulation.trace import Trace
from tests.simulation.wire import Network
from tests.support.virtual_time import Timeline, VirtualClock

_IN_VAIN: Final = 10
"""The number of fetches without records after which there are none up to the end."""
PATIENCE_S: Final = 120.0
"""The virtual seconds in which each step must end when all faults are over."""
_CREATE: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a run."""

    plan: Plan
    report: Report
    problems: tuple[str, ...]
    """The problems, beside the anomalies of the report."""
    digest: str
    """The digest of the trace: two runs with the same digest were the same run."""
    trace: tuple[str, ...] = ()
    lives: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return self.report.is_clean and not self.problems

    def text(self) -> str:
        """Return the result for a person to read."""
        return "\n".join((self.plan.text(), self.report.text(), *self.problems))


def simulate(plan: Plan, *, keep_trace: bool = False) -> Result:
    """Play a plan. The result has all that the broker did wrong."""
    timeline = Timeline()
    trace = Trace(lambda: timeline.now, keep=keep_trace)
    problems: list[str] = []
    bugs: list[str] = []
    runs: list[_Run] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            runs.append(_Run(plan, timeline, trace, nursery))
            await runs[0].play()
            nursery.cancel_scope.cancel()

    with _in_one_order(plan.seed), bugs_told(bugs):
        try:
            trio.run(main, clock=timeline)
        except Exception as error:  # noqa: BLE001 - any failure belongs to the seed
            problems.append(_told(error))
    (run,) = runs
    stage = run.stage
    failures = [_told(error) for error in stage.failures]
    return Result(
        plan=plan,
        report=check(stage.history),
        problems=(*run.problems, *problems, *bugs, *failures, *stage.ledger.findings),
        digest=trace.digest,
        trace=tuple(trace.lines or ()),
        lives=run.lives.count,
    )


class _in_one_order:
    """Trio shuffles tasks that can run; inside, it does so from the seed.

    The switch is trio's own, made for Hypothesis (and pytest-trio): see `trio._core._run`.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __enter__(self) -> None:
        self._before = trio_loop._ALLOW_DETERMINISTIC_SCHEDULING
        self._state = trio_loop._r.getstate()
        trio_loop._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
        trio_loop._r.seed(f"order {self._seed}")

    def __exit__(self, *_: object) -> None:
        trio_loop._ALLOW_DETERMINISTIC_SCHEDULING = self._before  # type: ignore[misc]
        trio_loop._r.setstate(self._state)


def _told(error: BaseException) -> str:
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, ExceptionGroup):
        return "; ".join(_told(one) for one in error.exceptions)
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = "" if at is None else f" ({at.tb_frame.f_code.co_qualname}:{at.tb_lineno})"
    return f"{type(error).__name__}: {error}{place}"


class _Run:
    def __init__(self, plan: Plan, timeline: Timeline, trace: Trace, nursery: trio.Nursery) -> None:
        self.plan = plan
        self.trace = trace
        self.problems: list[str] = []
        self._nursery = nursery
        self._clock = VirtualClock(timeline)
        self._network = Network(self._clock, trace, nursery)
        self.stage = Stage(plan, timeline, self._network, trace, nursery)
        self.lives = Lives(plan, timeline, self._network, trace, nursery)
        self._clients = [Client(self.stage, member) for member in plan.crowd]

    async def play(self) -> None:
        async with trio.open_nursery() as play:
            play.start_soon(self._watch, play.cancel_scope)
            await self._acts()
            play.cancel_scope.cancel()

    async def _watch(self, scope: trio.CancelScope) -> None:
        await self.stage.failed.wait()
        scope.cancel()

    async def _acts(self) -> None:
        clock, plan = self._clock, self.plan
        await self._begin()
        began = clock.monotonic()
        self._network.plan = plan.network
        for client in self._clients:
            client.begin()
        for event in plan.events:
            await clock.sleep_until(began + event.at)
            self._nursery.start_soon(self._befall, event)
        await clock.sleep_until(began + plan.seconds)
        await self._bounded("the calm after the faults", self._calm_down)
        first = await self._bounded("the last read", self._read_everything)
        self.stage.note("final", "final", "ok", more=first)
        if plan.may_forget:
            await self._bounded("the restart that forgets", self._restart_and_forget)
        elif plan.last_restart is not None:
            await self._bounded("the last restart", self._restart)
            await self._bounded("the groups after the restart", self._look_at_groups)
            again = await self._bounded("the read after the restart", self._read_everything)
            if again != first:
                self.problems.append(f"read {again} after the last restart, before it {first}")
        self.lives.check_logs()
        await self._bounded("the last stop", self.lives.stop)

    async def _bounded(self, what: str, act: Callable[[], Any]) -> Any:
        with self._clock.timeout(PATIENCE_S):
            return await act()
        raise AssertionError(f"{what} did not come to an end within {PATIENCE_S} virtual seconds")

    # ---- the beginning

    async def _begin(self) -> None:
        await self._up()
        wire = self._network.wire("admin", self._clock, Random(0))
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                for name, count in TOPICS.items()
            ],
            timeout_ms=30_000,
        )
        answer = await wire.call(ApiKey.CREATE_TOPICS, _CREATE, request, patience_s=PATIENCE_S)
        codes = {ErrorCode(topic.error_code) for topic in answer.topics}
        assert codes == {ErrorCode.NONE}, codes
        wire.close()

    async def _up(self) -> None:
        """Wait until the broker serves; start it if it does not run."""
        lives = self.lives
        while True:
            lives.start()
            life = lives.current
            assert life is not None
            if life.started.is_set():
                return
            with self._clock.timeout(1):
                await life.started.wait()

    # ---- what happens meanwhile

    async def _befall(self, event: Event) -> None:
        self.trace.note("nemesis", str(event))
        handler = {
            Kind.KILL_CLIENT: self._kill_client,
            Kind.PAUSE_CLIENT: self._pause_client,
            Kind.ZOMBIE: self._zombie,
            Kind.DROP_CONNECTIONS: self._drop_connections,
            Kind.SHIFT_WALL: self._shift_wall,
            Kind.PAUSE_BROKER: self._pause_broker,
            Kind.BREAK_DISK: self._fail_disk,
            Kind.FILL_DISK: self._fail_disk,
        }.get(event.kind, self._end_broker)
        await handler(event)

    async def _end_broker(self, event: Event) -> None:
        lives = self.lives
        if event.kind is Kind.RESTART_BROKER:
            await lives.stop()
        else:
            end = lives.lose_power if event.kind is Kind.LOSE_POWER else lives.kill
            await lives.strike(end, event.pick, event.lasts)
        await self._clock.sleep(event.lasts)
        lives.start()

    async def _pause_broker(self, event: Event) -> None:
        lives = self.lives
        paused = lives.current
        lives.pause()
        await self._clock.sleep(event.lasts)
        if lives.current is paused:
            lives.go_on()

    async def _fail_disk(self, event: Event) -> None:
        lives = self.lives
        directory = DIRECTORIES[int(event.pick * len(DIRECTORIES))]
        (lives.break_disk if event.kind is Kind.BREAK_DISK else lives.fill_disk)(directory)
        await self._clock.sleep(event.lasts)
        lives.heal_disk()
        lives.kill()
        lives.start()

    async def _shift_wall(self, event: Event) -> None:
        self.lives.shift_wall(int(event.lasts * 1000 * (1 if event.pick < 0.5 else -1)))

    async def _drop_connections(self, event: Event) -> None:
        self._network.drop_connections(event.pick, Random(event.pick))

    def _pick(
        self, event: Event, *, transactional: bool = False
    ) -> tuple[Client, Incarnation] | None:
        fit = [
            (client, current)
            for client in self._clients
            if (current := client.current) is not None
            and not current.is_paused
            and (client.member.has_transactions or not transactional)
        ]
        return fit[int(event.pick * len(fit))] if fit else None

    async def _kill_client(self, event: Event) -> None:
        if picked := self._pick(event):
            picked[1].kill()

    async def _pause_client(self, event: Event) -> None:
        if picked := self._pick(event):
            picked[1].pause()
            await self._clock.sleep(event.lasts)
            picked[1].resume()

    async def _zombie(self, event: Event) -> None:
        if picked := self._pick(event, transactional=True):
            client, zombie = picked
            zombie.pause()
            client.begin()
            await self._clock.sleep(event.lasts)
            zombie.resume()

    # ---- the end

    async def _calm_down(self) -> None:
        lives = self.lives
        self._network.plan = NO_FAULTS
        lives.heal_disk()
        lives.go_on()
        self.stage.is_going = False
        # A directory that failed is trusted again by the next start only.
        lives.kill()
        await self._up()
        every = [one for client in self._clients for one in client.incarnations]
        for incarnation in every:
            incarnation.resume()
        while self._network.late_requests or not all(one.is_over for one in every):
            await self._clock.sleep(0.1)
        for client in self._clients:
            if client.member.has_transactions:
                await self._end_open_transaction(client)
        await self._look_at_groups()

    async def _end_open_transaction(self, client: Client) -> None:
        """Take over the id: an open transaction is aborted, a decided one is carried out."""
        name = client.member.name
        wire = self._network.wire(f"{name}.last", self._clock, Random(0))
        await RawProducer(wire, name, version=client.member.version).open()
        wire.close()

    async def _look_at_groups(self) -> None:
        """Compare the groups' offsets with those that members have committed."""
        wire = self._network.wire("groups", self._clock, Random(0))
        groups = {m.group: m.keys for m in self.plan.crowd if m.subscribe and m.role == "poller"}
        for group, keys in groups.items():
            await GroupOffsets(wire, group, "the last look", self.stage.ledger).committed(keys)
        wire.close()

    async def _restart(self) -> None:
        lives = self.lives
        if self.plan.last_restart is Kind.RESTART_BROKER:
            await lives.stop()
        elif self.plan.last_restart is Kind.LOSE_POWER:
            lives.lose_power()
        else:
            lives.kill()
        await self._up()

    async def _restart_and_forget(self) -> None:
        """Restart: unsynced records may be lost, from some offset on.

        Uncommitted reads are compared, because the coordinator may forget as well, and decide once
        more. In compacted topics, records of aborted transactions may go meanwhile, or come back;
        each record that is there has its old value.
        """
        before = await self._read_all(committed=False)
        await self._restart()
        for key, pairs in (await self._read_all(committed=False)).items():
            known = before[key][: len(pairs)]
            if self.plan.is_compacted:
                known = [(offset, dict(before[key]).get(offset, value)) for offset, value in pairs]
            if known != pairs:
                self.problems.append(f"read {pairs} of {key}, before the power loss {before[key]}")

    async def _read_everything(self) -> dict[str, Any]:
        """Return all that a read_committed reader finds, the last stable offsets, the log ends."""
        wire = self._network.wire("final", self._clock, Random(0))
        ends = await self._ends(wire, isolation=0)
        stable = await self._ends(wire, isolation=1)
        wire.close()
        return {"value": await self._read_all(committed=True), "stable": stable, "ends": ends}

    async def _read_all(self, *, committed: bool) -> dict[str, list[tuple[int, str]]]:
        wire = self._network.wire("final", self._clock, Random(0))
        ends = await self._ends(wire, isolation=int(committed))
        found: dict[str, list[tuple[int, str]]] = {key: [] for key in ALL}
        fetcher = Fetcher(wire, Random(0), committed=committed)
        fetcher.assign(dict.fromkeys(ALL, 0))
        in_vain = 0
        while any(fetcher.positions[key] < ends[key] for key in ALL) and in_vain < _IN_VAIN:
            fetched = await fetcher.fetch(0.5, 1 << 30)
            for key, pairs in fetched.items():
                found[key] += pairs
            # The cleaner has taken the records before an active segment, and a power loss the rest.
            in_vain += not fetched and self.plan.is_compacted and self.plan.may_forget
        wire.close()
        return found

    async def _ends(self, wire: Any, *, isolation: int) -> dict[str, int]:
        answer = await persistent(
            wire,
            ApiKey.LIST_OFFSETS,
            log_ends.VERSION,
            log_ends.question(isolation=isolation, topics=TOPICS),
            lambda said: max(p.error_code for t in said.topics for p in t.partitions),
        )
        return log_ends.found_in(answer)
