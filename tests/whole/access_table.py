"""The table of access, for a whole broker in memory: the facts of its answers to each client.

The requests are those of the comparison with Apache Kafka (`tests/answers/access_requests.py`), the
clients have its grant sets; so the facts can be compared with those of Kafka's answers.
"""

from collections.abc import Sequence
from typing import Final

from protocol.api_keys import ApiKey
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.answers.access_facts import facts
from tests.answers.access_grants import MAY, NOT, GrantSet, all_rules, host_of
from tests.answers.access_names import (
    EXISTING,
    OWN_TRANSACTIONS,
    TRANSACTIONS,
    commits,
    names_of,
    of_one_case,
    own_topics,
    owned,
)
from tests.answers.access_requests import ZERO, Form, merged_requests
from tests.answers.access_run import leave_out_others
from tests.answers.pair import adding
from tests.frames.valid import Names, records, valid_request
from tests.support.produce_requests import one_batch
from tests.support.topic_requests import creation
from tests.support.whole_broker import LOG_DIR, WholeBroker
from tests.whole.plain import make_coordinators

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
        await make_coordinators(self._broker)
        self._about = await self._names(EXISTING)
        for request in commits():
            await self._admin.call(K.OFFSET_COMMIT, 8, request)
        components = self._broker.server.components
        assert components.acls is not None
        await components.driver.run(components.acls.create(all_rules(list(self._clients))))

    async def _names(self, existing: Sequence[str]) -> list[Names]:
        ids = {name: await self._made(name) for name in existing}
        return names_of(Names(topic="", topic_id=ZERO, directory=LOG_DIR), ids)

    async def _made(self, name: str) -> bytes:
        """Make a topic with some records; return its id."""
        await self._admin.call(K.CREATE_TOPICS, 7, creation(name, partitions=2))
        topic = self._broker.server.components.image.topic(name)
        assert topic is not None
        about = Names(topic=name, topic_id=topic.topic_id, directory=LOG_DIR)
        for _ in range(3):
            await self._admin.call(K.PRODUCE, 9, one_batch(name, records(about)))
        return topic.topic_id

    async def _begun(self, about: list[Names]) -> list[Names]:
        """Open a transaction with both topics for both transactional ids."""
        owners = []
        for name in (f"{MAY}t", f"{NOT}t"):
            request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=900_000)
            while (made := await self._admin.call(K.INIT_PRODUCER_ID, 4, request)).error_code:
                await self._broker.clock.sleep(0.1)
            owner = about[0].about(
                transactional_id=name,
                producer_id=made.producer_id,
                producer_epoch=made.producer_epoch,
            )
            await self._admin.call(K.ADD_PARTITIONS_TO_TXN, 3, adding(owner, *EXISTING))
            owners.append(owner)
        return owned(about, owners)

    async def told(self, key: ApiKey, version: int, form: Form, client: int) -> list[list[str]]:
        """Return the facts of each answer to a client."""
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
        if key is K.DELETE_TOPICS:
            about = await self._names(own_topics(number))
        if key in TRANSACTIONS:
            if key in OWN_TRANSACTIONS or (key, version) not in self._owned:
                self._owned[key, version] = await self._begun(about)
            about = self._owned[key, version]
        if key is K.DELETE_ACLS:
            for one in about:
                request = valid_request(K.CREATE_ACLS, 3, one)
                await self._admin.call(K.CREATE_ACLS, 3, request)
        return of_one_case(key, about, number)
