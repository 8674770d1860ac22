"""The roles of clients: each does the same in a loop, with any library, and notes each step.

    sender   a few fresh values to a few partitions, in one transaction; some are aborted
    mixer    the same, with a poll in each transaction: what it reads precedes what it writes (G1c)
    copier   consume-transform-produce: polls inputs, sends a value for each, commits the offsets in
             the transaction
    poller   reads; a member of a group commits its position, an assigned one goes back at times

A role returns when it has to stop. After `GivenUp` its process ends and a new one takes over.

Roles are coroutines that await a `Life` and clients. In a process of its own every call blocks
(`blocking`); in a simulation (`tests.simulation`) virtual time passes.
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
"""The share of transactions that a client aborts although it could commit them."""
CRASH_SHARE: Final = 0.004
"""The share of commits during which the process dies, while it waits for the answer."""
OUTSTANDING: Final = 300
"""Records without an answer after which an appender waits."""
FLUSH_S: Final = 8.0
JUMP_SHARE: Final = 0.03
"""The share of polls after which an assigned reader goes back, also into aborted records."""
JUMP: Final = 1_000
"""The most offsets that it goes back: more would be millions in a run of minutes."""


class Notes(Protocol):
    """Records what a client does (`tests.anomalies.history.Recorder`)."""

    def note(self, f: str, kind: str, *, op: int = -1, **more: Any) -> None:
        """Record an event, now."""

    def next_op(self) -> int:
        """Return a number for an operation that has several events."""


class PollingReader(CommittedReader, Protocol):
    """A reader that is a member of a group, or has assigned partitions."""

    async def commit(self, offsets: Mapping[str, int]) -> None:
        """For a member: commit where its successor goes on."""

    async def seek(self, offsets: Mapping[str, int]) -> None:
        """For an assigned reader: read on from there."""


class RewindingReader(CommittedReader, Protocol):
    """A reader that can go back."""

    async def rewind(self, keys: Sequence[str]) -> None:
        """Read on from the group's offsets."""


@dataclass(frozen=True, slots=True)
class Life:
    """The things that a role needs besides clients."""

    recorder: Notes
    random: Random
    going: Callable[[], bool]
    """Whether to begin anything more; if False, the role ends after its current step."""
    pause: Callable[[float], Awaitable[None]]
    """Wait for so many seconds."""
    crash_soon: Callable[[], None]
    """Die while waiting for the answer to a commit, when its outcome is open."""


class Transactions:
    """Runs one transaction after the other and notes the outcome of each."""

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
        """Run a transaction; return whether it was committed. Raises GivenUp.

        It stays open for `pause_s`.
        """
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
                # After a failed commit an abort proves nothing, so the outcome stays unknown.
                note("txn", "info" if asked else "fail", op=op, acks=acks, error=str(why))
                return False
        except GivenUp as why:
            note("txn", "info" if asked else "fail", op=op, acks=acks, error=str(why))
            raise
        note("txn", "ok", op=op)
        return True


class Values:
    """Values that no other process writes: `process:number`."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._last = 0

    def next(self) -> str:
        """Return a value that was not used before."""
        self._last += 1
        return f"{self._process}:{self._last}"


def fresh_sends(random: Random, values: Values, keys: Sequence[str]) -> list[tuple[str, str]]:
    """Draw a few (key, value) pairs; some keys get several values."""
    chosen = random.sample(keys, random.randint(1, min(3, len(keys))))
    return [(random.choice(chosen), values.next()) for _ in range(random.randint(1, 5))]


def _open_for(random: Random) -> float:
    """Draw how long a transaction stays open: most are short, some last a while."""
    return random.uniform(0.05, 0.5) if random.random() < 0.1 else 0.0


async def sender(
    transactions: Transactions, life: Life, values: Values, keys: Sequence[str]
) -> None:
    """Send transactions of some records to some keys; commit some and abort others."""
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
    """As `sender`, and note what each transaction has polled meanwhile."""
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
    """Write a record for each polled one, and the group's offsets in the same transaction."""
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
    """Poll, alone or as a member of a group, and note the records."""
    random = life.random
    following: dict[str, int] = {}
    while life.going():
        polled = await reader.poll(0.3, random.randint(1, 100))
        if polled:
            life.recorder.note("poll", "ok", value=polled)
            following |= {key: pairs[-1][0] + 1 for key, pairs in polled.items()}
        if member:
            # A member never goes back, so that the offsets of its group only rise.
            if polled:
                await reader.commit({key: following[key] for key in polled})
        elif following and random.random() < JUMP_SHARE:
            ends = following.items()
            await reader.seek({key: random.randrange(max(end - JUMP, 0), end) for key, end in ends})


class AppendingProducer(Protocol):
    """An idempotent producer without transactions."""

    async def send(self, key: str, value: str, answered: Callable[[int | None, str], None]) -> None:
        """Send; `answered` gets the offset (None: not known) and the error ("": none)."""

    async def answers(self, timeout_s: float) -> int:
        """Wait for answers so long; return how many records have none."""

    async def flush(self, timeout_s: float) -> None:
        """Wait for all answers."""


async def appender(
    producer: AppendingProducer, life: Life, values: Values, name: str, keys: Sequence[str]
) -> None:
    """Send records one after the other without waiting; each is noted as a transaction of its own.

    Raises GivenUp when a record was refused: the producer's state is unknown then.
    """
    random, note = life.random, life.recorder.note
    refused: list[str] = []

    async def one(key: str, value: str) -> None:
        op = life.recorder.next_op()

        def answered(offset: int | None, error: str) -> None:
            if error:
                refused.append(error)
                note("txn", "info", op=op, error=error)
            else:
                note("txn", "ok", op=op, acks={} if offset is None else {value: offset})

        sends = [["send", key, value]]
        note("txn", "invoke", op=op, value=sends, transactional_id=name, plain=True)
        note("txn", "committing", op=op)
        await producer.send(key, value, answered)

    while life.going():
        for _ in range(random.randint(1, 20)):
            await one(random.choice(keys), values.next())
        await life.pause(random.uniform(0.05, 0.3))
        while await producer.answers(0.0) > OUTSTANDING and life.going():
            await producer.answers(0.1)
        if refused:
            raise GivenUp(refused[0])
    await producer.flush(FLUSH_S)


class Awaited:
    """Makes a client whose calls block look like one whose calls are awaited."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        call = getattr(self._client, name)

        async def awaited(*args: Any, **more: Any) -> Any:
            return call(*args, **more)

        return awaited


def blocking(role: Coroutine[Any, Any, Result]) -> Result:
    """Run a role to its end, if all that it awaits blocks instead."""
    try:
        role.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise RuntimeError(f"{role} waits for something")
