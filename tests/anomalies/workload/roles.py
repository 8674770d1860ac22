"""What clients do, over and over, whatever their library is; each step is noted.

    sender   a few fresh values to a few partitions, in one transaction; some are aborted
    mixer    the same, with a poll in each transaction: what it read came before what it wrote (G1c)
    copier   consume-transform-produce: polls inputs, sends a value for each, commits the offsets in
             the transaction
    poller   reads; a member of a group commits where it is, another now and then goes back

A role returns when it is told to stop. `GivenUp` ends it: the process ends, a new one takes over.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, Protocol

from tests.anomalies.history import Recorder
from tests.anomalies.workload.clients import (
    CommittedReader,
    GivenUp,
    MustAbort,
    Records,
    TransactionalProducer,
)

Going = Callable[[], bool]
ABORTED_SHARE: Final = 0.2
"""Of transactions that could have been committed."""
CRASH_SHARE: Final = 0.004
"""Of commits: the process dies while it waits for the answer."""
CRASH_WITHIN_S: Final = 0.006
JUMP_SHARE: Final = 0.03
"""Of polls of an assigned reader: it goes back to anywhere, also into aborted transactions."""


class PollingReader(CommittedReader, Protocol):
    """A member of a group, or assigned."""

    def commit(self, offsets: Mapping[str, int]) -> None:
        """As a member: where a successor goes on."""

    def seek(self, offsets: Mapping[str, int]) -> None:
        """As assigned: go on there."""


class RewindingReader(CommittedReader, Protocol):
    """One that can go back."""

    def rewind(self, keys: Sequence[str]) -> None:
        """Go on where the group is."""


class Transactions:
    """Runs one transaction after the other and notes what becomes of each."""

    def __init__(
        self, producer: TransactionalProducer, recorder: Recorder, random: Random, name: str
    ) -> None:
        self._producer = producer
        self._recorder = recorder
        self._random = random
        self._name = name

    def run(
        self,
        sends: Sequence[tuple[str, str]],
        *,
        polled: Records | None = None,
        group: str | None = None,
        send_offsets: Callable[[], None] | None = None,
        pause_s: float = 0.0,
    ) -> bool:
        """Whether it was committed. `pause_s`: how long it stays open. Raises GivenUp."""
        producer, note = self._producer, self._recorder.note
        op = self._recorder.next_op()
        steps: list[list[Any]] = [] if polled is None else [["poll", polled]]
        steps += [["send", key, value] for key, value in sends]
        more = {} if group is None else {"group": group}
        note("txn", "invoke", op=op, value=steps, transactional_id=self._name, **more)
        asked = False
        acks: dict[str, int] = {}
        try:
            try:
                producer.begin()
                half = len(sends) // 2
                for key, value in sends[:half]:
                    producer.send(key, value)
                if half and pause_s:
                    acks |= producer.flush()
                    time.sleep(pause_s)
                for key, value in sends[half:]:
                    producer.send(key, value)
                acks |= producer.flush()
                if send_offsets is not None:
                    send_offsets()
                if self._random.random() < ABORTED_SHARE:
                    raise MustAbort("by choice")
                asked = True
                note("txn", "committing", op=op, acks=acks)
                if self._random.random() < CRASH_SHARE:
                    self._crash_soon()
                producer.commit()
            except MustAbort as why:
                producer.abort()
                # An abort after a commit that failed says little: leave it open.
                note("txn", "info" if asked else "fail", op=op, acks=acks, error=str(why))
                return False
        except GivenUp as why:
            note("txn", "info" if asked else "fail", op=op, acks=acks, error=str(why))
            raise
        note("txn", "ok", op=op)
        return True

    def _crash_soon(self) -> None:
        """kill -9 of itself, at the moment that leaves most open."""
        self._recorder.note("crash", "info")
        within_s = self._random.uniform(0, CRASH_WITHIN_S)
        threading.Timer(within_s, os.kill, (os.getpid(), signal.SIGKILL)).start()


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


def sender(
    transactions: Transactions, random: Random, values: Values, keys: Sequence[str], going: Going
) -> None:
    """See the module."""
    while going():
        sends = fresh_sends(random, values, keys)
        transactions.run(sends, pause_s=_open_for(random))
        time.sleep(random.uniform(0.0, 0.03))


def mixer(
    transactions: Transactions,
    reader: CommittedReader,
    recorder: Recorder,
    random: Random,
    values: Values,
    keys: Sequence[str],
    going: Going,
) -> None:
    """See the module."""
    while going():
        polled = reader.poll(0.05, 50)
        if polled:
            recorder.note("poll", "ok", value=polled)
        sends = fresh_sends(random, values, keys)
        transactions.run(sends, polled=polled or None, pause_s=_open_for(random))


def copier(
    transactions: Transactions,
    reader: RewindingReader,
    send_offsets: Callable[[Mapping[str, int]], None],
    recorder: Recorder,
    random: Random,
    values: Values,
    keys: Sequence[str],
    group: str,
    going: Going,
) -> None:
    """See the module."""
    while going():
        polled = reader.poll(0.3, random.randint(1, 12))
        if not polled:
            continue
        recorder.note("poll", "ok", value=polled)
        sends = [(random.choice(keys), values.next()) for pairs in polled.values() for _ in pairs]
        following = {key: pairs[-1][0] + 1 for key, pairs in polled.items()}
        done = transactions.run(
            sends,
            polled=polled,
            group=group,
            send_offsets=lambda following=following: send_offsets(following),  # type: ignore[misc]
            pause_s=_open_for(random),
        )
        if not done:
            reader.rewind(list(polled))


def poller(
    reader: PollingReader, recorder: Recorder, random: Random, member: bool, going: Going
) -> None:
    """See the module."""
    following: dict[str, int] = {}
    while going():
        polled = reader.poll(0.3, random.randint(1, 100))
        if polled:
            recorder.note("poll", "ok", value=polled)
            following |= {key: pairs[-1][0] + 1 for key, pairs in polled.items()}
        if member and polled:
            reader.commit({key: following[key] for key in polled})
        elif following and random.random() < JUMP_SHARE:
            reader.seek({key: random.randrange(end) for key, end in following.items()})
