"""No request stops the event loop for long: every API, every array of its requests.

The requests are made from the declarations (`tests.support.largest_requests`), so an API that is
added is tried as well. The measure is the processor time of single steps of the broker's tasks, for
which others would wait. (Time itself is virtual here, so a turn ends with its items only.)
"""

import gc
import time
from typing import Any

import pytest
import trio

from broker.__main__ import GC_THRESHOLDS
from broker.registry import APIS
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlteredEntityPart,
    QuotaAlteration,
    QuotaOperation,
)
from protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.support.largest_requests import Path, arrays, largest
from tests.support.topic_requests import creation, growth
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.plain import make_coordinators

LONGEST_S = 0.25
"""Processor time of one step. Hardly any takes a tenth of it, but caches may be cold."""
ELEMENTS = 100_000
NUMBERLESS = bytes(16)

CASES = [
    (key, api.versions[1], path)
    for key, api in APIS.items()
    for path in arrays(key, api.versions[1])
]


class LongestStep(trio.abc.Instrument):
    """The longest step of any task but the one that plays the clients."""

    def __init__(self) -> None:
        self._clients = trio.lowlevel.current_task()
        self._began = 0.0
        self.seconds = 0.0
        self.where = ""

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        seconds = time.thread_time() - self._began
        if task is not self._clients and seconds > self.seconds:
            self.seconds, self.where = seconds, task.name


async def longest_step(broker: WholeBroker, key: int, version: int, request: Any) -> Any:
    """Send a request; return the answer, None if there was none. Asserts that no step was long."""
    # A collection goes through what thousands of other tests have left, too: no broker has that.
    gc.collect()
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    watch = LongestStep()
    trio.lowlevel.add_instrument(watch)
    client = broker.client()
    try:
        answer = await client.call(key, version, request, patience_s=600)
    except OSError:
        answer = None  # the broker closed the connection
    finally:
        client.close()
        trio.lowlevel.remove_instrument(watch)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    assert watch.seconds < LONGEST_S, f"{watch.where} took {watch.seconds:.3f} s"
    assert await broker.client().call(ApiKey.API_VERSIONS, 3)
    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "version", "path"),
    CASES,
    ids=lambda value: value.name if isinstance(value, ApiKey) else str(value),
)
def test_the_largest_request_of_every_array(key: ApiKey, version: int, path: Path) -> None:
    count = min(ELEMENTS, APIS[key].most_elements - 10)

    @whole_broker()
    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t0", 4)
        fields = {"acks": 1} if key == ApiKey.PRODUCE else {}
        await longest_step(broker, key, version, largest(key, version, path, count, **fields))

    scenario()


def test_every_api_with_arrays_is_tried() -> None:
    tried = {key for key, _, _ in CASES}
    assert set(APIS) - tried == {
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.API_VERSIONS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.END_TXN,
        ApiKey.HEARTBEAT,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }


@whole_broker()
async def test_more_elements_than_an_api_takes_cost_the_connection(broker: WholeBroker) -> None:
    count = APIS[ApiKey.LEAVE_GROUP].most_elements + 1
    request = largest(ApiKey.LEAVE_GROUP, 5, ("members",), count)
    assert await longest_step(broker, ApiKey.LEAVE_GROUP, 5, request) is None


@whole_broker()
async def test_millions_of_partitions_are_refused_at_once(broker: WholeBroker) -> None:
    await broker.create_topic("t")
    for number in (10_002, 20_000_000, 2**31 - 1):
        count = min(number + 1, 2**31 - 1)
        for validate_only in (False, True):
            request = creation("n", partitions=number, validate_only=validate_only)
            made = await longest_step(broker, ApiKey.CREATE_TOPICS, 7, request)
            assert made.topics[0].error_code == ErrorCode.POLICY_VIOLATION
            more = growth("t", count, validate_only=validate_only)
            grown = await longest_step(broker, ApiKey.CREATE_PARTITIONS, 3, more)
            assert grown.results[0].error_code == ErrorCode.POLICY_VIOLATION


@whole_broker()
async def test_one_broker_is_described_once_however_often_it_is_named(broker: WholeBroker) -> None:
    asked = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    request = DescribeConfigsRequest(
        resources=[asked] * 5_000, include_synonyms=True, include_documentation=True
    )
    described = await longest_step(broker, ApiKey.DESCRIBE_CONFIGS, 4, request)
    assert len(described.results) == 1
    assert len(described.results[0].configs) > 100


@whole_broker()
async def test_many_topics_are_made_by_one_metadata_request(broker: WholeBroker) -> None:
    names = [f"auto{number}" for number in range(200)]
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name, topic_id=NUMBERLESS) for name in names],
        allow_auto_topic_creation=True,
    )
    answer = await longest_step(broker, ApiKey.METADATA, 12, request)
    assert sorted(topic.name for topic in answer.topics) == sorted(names)
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.NONE}


@whole_broker(num__partitions="100")
async def test_topics_beyond_the_limit_are_not_made(broker: WholeBroker) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=f"t{n}", topic_id=NUMBERLESS) for n in range(101)],
        allow_auto_topic_creation=True,
    )
    answer = await longest_step(broker, ApiKey.METADATA, 12, request)
    codes = {topic.error_code for topic in answer.topics}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@whole_broker()
async def test_a_commit_of_many_partitions_and_all_of_them_fetched(broker: WholeBroker) -> None:
    """More than are parsed, written or answered in one step; each is there afterwards."""
    partitions, times = 300, 5
    await broker.create_topic("t", partitions)
    await make_coordinators(broker)
    asked = [
        OffsetCommitRequestPartition(partition_index=n, committed_offset=n)
        for n in [*range(partitions)] * times + [partitions]
    ]
    topics = [OffsetCommitRequestTopic(name="t", partitions=asked)]
    commit = OffsetCommitRequest(group_id="g", topics=topics)
    stored = await longest_step(broker, ApiKey.OFFSET_COMMIT, 9, commit)
    codes = [one.error_code for one in stored.topics[0].partitions]
    assert codes[:-1] == [ErrorCode.NONE] * partitions * times
    assert codes[-1] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    group = OffsetFetchRequestGroup(group_id="g", member_epoch=-1, topics=None)
    fetched = await longest_step(broker, ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group]))
    found = fetched.groups[0].topics[0].partitions
    assert [one.committed_offset for one in found] == list(range(partitions))


@whole_broker()
async def test_quotas_of_many_clients_are_set_described_and_removed(broker: WholeBroker) -> None:
    count = 12_000

    def altered(**operation: Any) -> AlterClientQuotasRequest:
        operations = [QuotaOperation(key="producer_byte_rate", **operation)]
        parts = [AlteredEntityPart(entity_type="user", entity_name=f"u{n}") for n in range(count)]
        return AlterClientQuotasRequest(
            entries=[QuotaAlteration(entity=[part], ops=operations) for part in parts]
        )

    for operation, left in (({"value": 5.0}, count), ({"remove": True}, 0)):
        done = await longest_step(broker, ApiKey.ALTER_CLIENT_QUOTAS, 1, altered(**operation))
        assert [one.error_code for one in done.entries] == [ErrorCode.NONE] * count
        request = DescribeClientQuotasRequest()
        described = await longest_step(broker, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request)
        assert len(described.entries) == left
