"""The table of access, asked of a whole broker in memory: what it tells which client.

The requests are those of the comparison with Apache Kafka (`tests/answers/access_requests.py`), the
clients its grant sets; so the facts can be held against those that Kafka gave.
"""

from collections.abc import Sequence
from typing import Final

from protocol.api_keys import ApiKey
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.answers.access_facts import facts
from tests.answers.access_grants import MAY, NOT, GrantSet, all_rules, host_of
from tests.answers.access_requests import TOPICS, ZERO, Form, merged_requests
from tests.answers.access_run import (
    EXISTING,
    OWN_GROUPS,
    OWN_TOPICS,
    OWN_TRANSACTIONS,
    TRANSACTIONS,
    UNKNOWN_IDS,
    leave_out_others,
)
from tests.frames.valid import Names, records, valid_request
from tests.support.produce_requests import one_batch
from tests.support.whole_broker import LOG_DIR, WholeBroker

K = ApiKey
PATIENCE_S: Final = 2.0


class AccessTable:
    """A broker with the rules of all clients."""

    def __init__(self, broker: WholeBroker, clients: Sequence[GrantSet]) -> None:
        self._broker = broker
        self._admin = broker.client("admin")
        self._clients = clients
        self._about: list[Names] = []
        self._owned: dict[tuple[ApiKey, int], list[Names]] = {}
        self._number = 0

    async def prepare(self) -> None:
        """Make topics, groups, transactions and all rules."""
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key="any", key_type=key_type)
            await self._admin.call(K.FIND_COORDINATOR, 3, request)
        self._about = await self._names(EXISTING)
        for prefix in (MAY, NOT):
            partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
            topics = [
                OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in EXISTING
            ]
            await self._admin.call(
                K.OFFSET_COMMIT,
                8,
                OffsetCommitRequest(
                    group_id=f"{prefix}g", generation_id_or_member_epoch=-1, topics=topics
                ),
            )
        components = self._broker.server.components
        assert components.acls is not None
        await components.driver.run(components.acls.create(all_rules(list(self._clients))))

    async def _names(self, existing: Sequence[str]) -> list[Names]:
        ids = {name: await self._made(name) for name in existing}
        return [
            Names(
                topic=topic,
                topic_id=ids.get(topic) or UNKNOWN_IDS.get(topic, ZERO),
                directory=LOG_DIR,
                group=f"{prefix}g",
                transactional_id=f"{prefix}t",
                new_topic=f"{topic[:4]}new",
            )
            for prefix in (MAY, NOT)
            for topic in (*existing, *TOPICS[2:])
        ]

    async def _made(self, name: str) -> bytes:
        """A topic with some records; return its id."""
        topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1)]
        await self._admin.call(
            K.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=30_000)
        )
        topic = self._broker.server.components.image.topic(name)
        assert topic is not None
        about = Names(topic=name, topic_id=topic.topic_id, directory=LOG_DIR)
        for _ in range(3):
            await self._admin.call(K.PRODUCE, 9, one_batch(name, records(about)))
        return topic.topic_id

    async def _own(self, about: list[Names]) -> list[Names]:
        """Both transactional ids have an open transaction with both topics."""
        owners = {}
        for prefix in (MAY, NOT):
            name = f"{prefix}t"
            while True:
                owner = await self._admin.call(
                    K.INIT_PRODUCER_ID,
                    4,
                    InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=900_000),
                )
                if owner.error_code == 0:
                    break
                await self._broker.clock.sleep(0.1)
            owners[name] = owner
            await self._admin.call(
                K.ADD_PARTITIONS_TO_TXN,
                3,
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=name,
                    v3_and_below_producer_id=owner.producer_id,
                    v3_and_below_producer_epoch=owner.producer_epoch,
                    v3_and_below_topics=[
                        AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in EXISTING
                    ],
                ),
            )
        return [
            one.about(
                producer_id=owners[one.transactional_id].producer_id,
                producer_epoch=owners[one.transactional_id].producer_epoch,
            )
            for one in about
        ]

    async def told(self, key: ApiKey, version: int, form: Form, client: int) -> list[list[str]]:
        """The facts of each answer to a client."""
        self._number += 1
        about = await self._prepared(key, version)
        line = self._broker.client(host=host_of(client))
        found = []
        for request in merged_requests(key, version, form, about):
            try:
                answer = await line.call(key, version, request, PATIENCE_S)
            except TimeoutError:
                found.append(["silent"])
            except OSError:
                found.append(["closed"])
            else:
                leave_out_others(key, answer, about)
                found.append(facts(answer, {one.topic_id: one.topic for one in about}))
        line.close()
        return found

    async def _prepared(self, key: ApiKey, version: int) -> list[Names]:
        about, number = self._about, self._number
        if key in OWN_TOPICS:
            about = await self._names(tuple(f"{prefix}{number}" for prefix in (MAY, NOT)))
        if key in TRANSACTIONS:
            if key in OWN_TRANSACTIONS or (key, version) not in self._owned:
                self._owned[key, version] = await self._own(about)
            about = self._owned[key, version]
        if key in OWN_GROUPS:
            about = [one.about(group=f"{one.group}-{number}") for one in about]
        if key is K.METADATA:
            about = [
                one if one.topic in EXISTING else one.about(topic=f"{one.topic}-{number}")
                for one in about
            ]
        if key is K.DELETE_ACLS:
            for one in about:
                request = valid_request(K.CREATE_ACLS, 3, one)
                await self._admin.call(K.CREATE_ACLS, 3, request)
        if key is K.CREATE_TOPICS:
            about = [one.about(new_topic=f"{one.new_topic}-{number}") for one in about]
        return about
