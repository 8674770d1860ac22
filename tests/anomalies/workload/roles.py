"""What clients do, over and over, whatever their library is; each step is noted.

    sender   a few fresh values to a few partitions, in one transaction; some are aborted
    mixer    the same, with a poll in each transaction: what it read came before what it wrote (G1c)
    copier   consume-transform-produce: polls inputs, sends a value for each, commits the offsets in
             the transaction
    poller   reads; a member of a group commits where it is, another now and then goes back

A role returns when it is told to stop. `GivenUp` ends it: the process ends, a new one takes over.

Roles are coroutines over what a `Life` and the clients let them await: in a process of its own
every call blocks (`blocking`), in a simulation (`tests.simulation`) virtual time passes.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol, TypeVar

from tests.anomalies.workload.clients import (
    CommittedReader,
    GivenUp,
    MustAbort,
    Records,
    TransactionalProducer,
)

Result = TypeVar("Result")
ABORTED_SHARE: Final = 0.2
"""Of transactions that could have been committed."""
CRASH_SHARE: Final = 0.004
"""Of commits: the process dies while it waits for the answer."""
JUMP_SHARE: Final = 0.03
"""Of polls of an assigned reader: it goes back to anywhere, also into aborted transactions."""


class Notes(Protocol):
    """Where a client writes down what it does (`tests.anomalies.history.Recorder`)."""

    def note(self, f: str, kind: str, *, op: int = -1, **more: Any) -> None:
        """One event, now."""

    def next_op(self) -> int:
        """A number for an operation of more than one event."""


class PollingReader(CommittedReader, Protocol):
    """A member of a group, or assigned."""

    async def commit(self, offsets: Mapping[str, int]) -> None:
        """As a member: where a successor goes on."""

    async def seek(self, offsets: Mapping[str, int]) -> None:
        """As assigned: go on there."""


class RewindingReader(CommittedReader, Protocol):
    """One that can go back."""

    async def rewind(self, keys: Sequence[str]) -> None:
        """Go on where the group is."""


@dataclass(frozen=True, slots=True)
class Life:
    """What a role needs besides clients."""

    recorder: Notes
    random: Random
    going: Callable[[], bool]
    """False: end after what is under way."""
    pause: Callable[[float], Awaitable[None]]
    """Let so many seconds pass."""
    crash_soon: Callable[[], None]
    """Die at the moment that leaves most open: while a commit is waited for."""


class Transactions:
    """Runs one transaction after the other and notes what becomes of each."""

    def __init__(self, producer: TransactionalProducer, life: Life, name: str) -> None:
        self._producer = producer
        self._life = life
        self._name = name

    async def run(
        self,
        sends: Sequence[tuple[str, str]],
        *,
        polled: Records | None = None,
        group: str | None = None,
        send_offsets: Callable[[], Awaitable[None]] | None = None,
        pause_s: float = 0.0,
    ) -> bool:
        """Whether it was committed. `pause_s`: how long it stays open. Raises GivenUp."""
        producer, life = self._producer, self._life
        note = life.recorder.note
        op = life.recorder.next_op()
        steps: list[list[Any]] = [] if polled is None else [["poll", polled]]
        steps += [["send", key, value] for key, value in sends]
        more = {} if group is None else {"group": group}
        note("txn", "invoke", op=op, value=steps, transactional_id=self._name, **more)
        asked = False
        acks: dict[str, int] = {}
        try:
            try:
                await producer.begin()
                half = len(sends) // 2
                for key, value in sends[:half]:
                    await producer.send(key, value)
                if half and pause_s:
                    acks |= await producer.flush()
                    await life.pause(pause_s)
                for key, value in sends[half:]:
                    await producer.send(key, value)
                acks |= await producer.flush()
                if send_offsets is not None:
                    await send_offsets()
                if life.random.random() < ABORTED_SHARE:
                    raise MustAbort("by choice")
                asked = True
                note("txn", "committing", op=op, acks=acks)
                if life.random.random() < CRASH_SHARE:
                    note("crash", "info")
                    life.crash_soon()
                await producer.commit()
            except MustAbort as why:
                await producer.abort()
                # An abort after a commit that failed says little: leave it open.
                note("txn", "info" if asked else "fail", op=op, acks=acks, error=str(why))
                return False
        except GivenUp as why:
            note("txn", "info" if asked else "fail", op=op, acks=acks, error=str(why))
            raise
        note("txn", "ok", op=op)
        return True


class Values:
    """Values that nobody else writes: `process:number`."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._last = 0

    def next(self) -> str:
        """A fresh one."""
        self._last += 1
        return f"{self._process}:{self._last}"


def fresh_sends(random: Random, values: Values, keys: Sequence[str]) -> list[tuple[str, str]]:
    """A few values to a few keys, several to some."""
    chosen = random.sample(keys, random.randint(1, min(3, len(keys))))
    return [(random.choice(chosen), values.next()) for _ in range(random.randint(1, 5))]


def _open_for(random: Random) -> float:
    """Most transactions are short, some stay open for a while."""
    return random.uniform(0.05, 0.5) if random.random() < 0.1 else 0.0


async def sender(
    transactions: Transactions, life: Life, values: Values, keys: Sequence[str]
) -> None:
    """Sends transactions of some records to some keys, and ends them one way or the other."""
    random = life.random
    while life.going():
        sends = fresh_sends(random, values, keys)
        await transactions.run(sends, pause_s=_open_for(random))
        await life.pause(random.uniform(0.0, 0.03))


async def mixer(
    transactions: Transactions,
    reader: CommittedReader,
    life: Life,
    values: Values,
    keys: Sequence[str],
) -> None:
    """Notes in each transaction what it has polled meanwhile."""
    random = life.random
    while life.going():
        polled = await reader.poll(0.05, 50)
        if polled:
            life.recorder.note("poll", "ok", value=polled)
        sends = fresh_sends(random, values, keys)
        await transactions.run(sends, polled=polled or None, pause_s=_open_for(random))


async def copier(
    transactions: Transactions,
    reader: RewindingReader,
    send_offsets: Callable[[Mapping[str, int]], Awaitable[None]],
    life: Life,
    values: Values,
    keys: Sequence[str],
    group: str,
) -> None:
    """Writes a record for each that it polled, and its group's offsets in the same transaction."""
    random = life.random
    while life.going():
        polled = await reader.poll(0.3, random.randint(1, 12))
        if not polled:
            continue
        life.recorder.note("poll", "ok", value=polled)
        sends = [(random.choice(keys), values.next()) for pairs in polled.values() for _ in pairs]
        following = {key: pairs[-1][0] + 1 for key, pairs in polled.items()}
        done = await transactions.run(
            sends,
            polled=polled,
            group=group,
            send_offsets=lambda following=following: send_offsets(following),  # type: ignore[misc]
            pause_s=_open_for(random),
        )
        if not done:
            await reader.rewind(list(polled))


async def poller(reader: PollingReader, life: Life, *, member: bool) -> None:
    """Polls, alone or as a member of a group, and notes what came."""
    random = life.random
    following: dict[str, int] = {}
    while life.going():
        polled = await reader.poll(0.3, random.randint(1, 100))
        if polled:
            life.recorder.note("poll", "ok", value=polled)
            following |= {key: pairs[-1][0] + 1 for key, pairs in polled.items()}
        if member:
            # A member never goes back, so what its group has committed only rises.
            if polled:
                await reader.commit({key: following[key] for key in polled})
        elif following and random.random() < JUMP_SHARE:
            await reader.seek({key: random.randrange(end) for key, end in following.items()})


class Awaited:
    """A client whose calls block, as one whose calls are awaited (and are over at once)."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        call = getattr(self._client, name)

        async def awaited(*args: Any, **more: Any) -> Any:
            return call(*args, **more)

        return awaited


def blocking(role: Coroutine[Any, Any, Result]) -> Result:
    """Run a role all of whose calls block, to its end."""
    try:
        role.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise RuntimeError(f"{role} waits for something")
