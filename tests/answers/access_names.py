"""The things that requests of the table of access are about: topics, groups and transactional ids.

Each case gets a list of `Names`: (may, not) × topics.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from protocol.api_keys import ApiKey
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.answers.access_grants import MAY, NOT
from tests.answers.access_requests import TOPICS, ZERO
from tests.frames.valid import Names

K = ApiKey
EXISTING: Final = TOPICS[:2]
UNKNOWN_IDS: Final = {name: bytes(15) + bytes([n + 1]) for n, name in enumerate(TOPICS)}
OWN_GROUPS: Final = frozenset(
    (K.JOIN_GROUP, K.SYNC_GROUP, K.HEARTBEAT, K.LEAVE_GROUP, K.DELETE_GROUPS)
)
OWN_TRANSACTIONS: Final = frozenset((K.END_TXN, K.WRITE_TXN_MARKERS))
"""They end what the next case would find."""
TRANSACTIONS: Final = frozenset(
    (
        *(K.PRODUCE, K.ADD_PARTITIONS_TO_TXN, K.ADD_OFFSETS_TO_TXN, K.END_TXN),
        *(K.TXN_OFFSET_COMMIT, K.DESCRIBE_TRANSACTIONS, K.LIST_TRANSACTIONS),
        K.WRITE_TXN_MARKERS,
    )
)


def own_topics(number: int) -> tuple[str, str]:
    """The two topics of one case that deletes them."""
    return f"{MAY}{number}", f"{NOT}{number}"


def names_of(known: Names, ids: Mapping[str, bytes]) -> list[Names]:
    """The things of a case: the topics of `ids` exist, two others do not."""
    return [
        known.about(
            topic=topic,
            topic_id=ids.get(topic) or UNKNOWN_IDS.get(topic, ZERO),
            group=f"{prefix}g",
            transactional_id=f"{prefix}t",
            new_topic=f"{topic[:4]}new",
        )
        for prefix in (MAY, NOT)
        for topic in (*ids, *TOPICS[2:])
    ]


def commits() -> Iterator[OffsetCommitRequest]:
    """Requests that make both groups: each commits an offset of both topics."""
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    topics = [OffsetCommitRequestTopic(name=name, partitions=partitions) for name in EXISTING]
    for prefix in (MAY, NOT):
        yield OffsetCommitRequest(
            group_id=f"{prefix}g", generation_id_or_member_epoch=-1, topics=topics
        )


def owned(about: list[Names], owners: list[Names]) -> list[Names]:
    """The same things, by the owners of the transactional ids."""
    producers = {one.transactional_id: one for one in owners}
    return [
        one.about(
            producer_id=producers[one.transactional_id].producer_id,
            producer_epoch=producers[one.transactional_id].producer_epoch,
        )
        for one in about
    ]


def of_one_case(key: ApiKey, about: list[Names], number: int) -> list[Names]:
    """The same things, under names of their own if what a case leaves would disturb the next."""
    if key in OWN_GROUPS:
        return [one.about(group=f"{one.group}-{number}") for one in about]
    if key is K.METADATA:
        return [
            one if one.topic in EXISTING else one.about(topic=f"{one.topic}-{number}")
            for one in about
        ]
    if key is K.CREATE_TOPICS:
        return [one.about(new_topic=f"{one.new_topic}-{number}") for one in about]
    return about
