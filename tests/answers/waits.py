"""The time of a Fetch: some answers come at once, some after `max.wait` (S-READ-6).

Single requests are compared by their answers; here the time is compared as well: at once, or
not. Most cases find less than `min.bytes`, so that both brokers could wait.
"""

import time
from dataclasses import dataclass, replace
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.builder import build_batch
from tests.answers.accepted import Asked
from tests.answers.pair import Outcome, Pair, Side, eventually
from tests.answers.run import Comparison
from tests.frames.valid import Names
from tests.fuzz.findings import error_codes
from tests.support.produce_requests import one_batch
from tests.support.topic_requests import creation

MAX_WAIT_S: Final = 1.0
AT_ONCE_S: Final = 0.7
"""Shorter than the wait, and much longer than any answer that does not wait."""
_TOPIC: Final = "waits"
_SEGMENT: Final = 1 << 20
"""The least that Kafka 4 takes."""
_BATCH: Final = 340_000
"""Three of them fill a segment."""
_BATCHES: Final = 8
"""Offsets 0-2, 3-5 and 6-7 lie in three segments; a transaction begins at 4 and stays open."""
_OPEN: Final = 4
_FETCH_VERSION: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One Fetch of partition 0."""

    text: str
    offset: int
    committed: bool = False
    min_bytes: int = 10 << 20
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    beside: str | None = None
    """Another topic, which comes first in the request and does not exist."""
    topic: str | None = _TOPIC
    appended: int = 0
    """A batch of this size is appended while the fetch waits."""


_END: Final = _BATCHES
CASES: Final = (
    *(Wait(text=f"offset {at}", offset=at) for at in range(_END + 1)),
    *(Wait(text=f"committed, {at}", offset=at, committed=True) for at in range(_END + 1)),
    Wait(text="enough bytes", offset=6, min_bytes=_BATCH),
    Wait(text="one byte more than there is", offset=7, min_bytes=2 * _BATCH),
    Wait(text="out of range", offset=_END + 1),
    Wait(text="the right epoch", offset=6, leader_epoch=0),
    Wait(text="an epoch to come", offset=6, leader_epoch=1),
    Wait(text="the last epoch fetched", offset=_END, last_fetched_epoch=0),
    Wait(text="an epoch that diverges", offset=_END, last_fetched_epoch=7),
    Wait(text="beside an unknown topic", offset=_END, beside="unknown"),
    Wait(text="beside an unknown topic, older", offset=0, beside="unknown"),
    Wait(text="an unknown topic only", offset=0, topic=None, beside="unknown"),
    Wait(text="a small append", offset=_END, appended=1000),
    Wait(text="an append that rolls", offset=_END + 1, appended=_SEGMENT - 1000),
    Wait(text="after the roll", offset=_END + 2),
    Wait(text="before the roll", offset=_END),
)


def compare_waits(pair: Pair, comparison: Comparison) -> None:
    """Send both brokers each case, one after the other; `comparison` takes the results."""
    for side in pair.sides:
        _fill(side)
    for case in CASES:
        theirs, ours = (_ask(side, case) for side in pair.sides)
        asked = Asked(ApiKey.FETCH, _FETCH_VERSION, _request(case), 0, theirs, ours)
        comparison.note(f"FETCH v{_FETCH_VERSION} waits: {case.text}", asked)


def _ask(side: Side, case: Wait) -> Outcome:
    began = time.monotonic()
    side.send(ApiKey.FETCH, _FETCH_VERSION, _request(case))
    if case.appended:
        other = Side(side.port, side.directory)
        _append(other, case.appended)
        other.hang_up()
    outcome = side.receive(ApiKey.FETCH, _FETCH_VERSION, 10 * MAX_WAIT_S)
    return replace(outcome, waited=time.monotonic() - began > AT_ONCE_S)


def _request(case: Wait) -> FetchRequest:
    one = FetchPartition(
        partition=0,
        fetch_offset=case.offset,
        current_leader_epoch=case.leader_epoch,
        last_fetched_epoch=case.last_fetched_epoch,
        partition_max_bytes=20 << 20,
    )
    return FetchRequest(
        max_wait_ms=int(MAX_WAIT_S * 1000),
        min_bytes=case.min_bytes,
        max_bytes=40 << 20,
        isolation_level=int(case.committed),
        session_epoch=-1,
        topics=[
            FetchTopic(topic=name, partitions=[one]) for name in (case.beside, case.topic) if name
        ],
    )


def _fill(side: Side) -> None:
    configs = {"segment.bytes": str(_SEGMENT), "max.message.bytes": str(2 * _SEGMENT)}
    made = side.call(ApiKey.CREATE_TOPICS, 5, creation(_TOPIC, configs=configs))
    assert error_codes(made) <= {0}, made
    names = Names(topic=_TOPIC, topic_id=bytes(16), directory="/", transactional_id="of-waits")
    owner = side.own(names)
    for number in range(_BATCHES):
        if number != _OPEN:
            _append(side, _BATCH)
            continue
        side.add_to_transaction(owner, _TOPIC)
        _append(
            side,
            _BATCH,
            owner.transactional_id,
            producer_id=owner.producer_id,
            producer_epoch=owner.producer_epoch,
            base_sequence=0,
            transactional=True,
        )


def _append(side: Side, size: int, transactional_id: str | None = None, **producer: Any) -> None:
    batch = build_batch([(1_700_000_000_000, b"k", bytes(size), ())], **producer)
    request = one_batch(_TOPIC, batch, transactional_id=transactional_id)
    eventually(lambda: error_codes(side.call(ApiKey.PRODUCE, 9, request)) <= {0})
