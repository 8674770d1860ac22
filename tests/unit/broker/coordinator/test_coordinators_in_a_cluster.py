"""In a cluster both coordinators write the versions of Kafka 3.9 and share work with others."""

import struct
from dataclasses import replace

import pytest

from broker.coordinator.across_brokers import AcrossBrokers
from broker.coordinator.group.data.serde import decode_record as decode_group_record
from broker.coordinator.group.settings import GroupSettings
from broker.coordinator.transaction.records import decode_record
from broker.coordinator.transaction.settings import TransactionSettings
from config.broker_config import BrokerConfig
from protocol.types import OFFSETS_TOPIC, TopicPartition
from tests.support.fake_peers import FakePeer, image_of, set_leaders
from tests.support.group_harness import GroupHarness
from tests.support.transaction_harness import T0, TransactionHarness

ALONE = BrokerConfig.parse({})
MEMBER = BrokerConfig.parse({"zookeeper.connect": "127.0.0.1:2181"})


@pytest.mark.parametrize(("config", "offsets", "transactions"), [(ALONE, 4, 1), (MEMBER, 3, 0)])
def test_records_have_the_versions_of_kafka_3_9_in_a_cluster(
    config: BrokerConfig, offsets: int, transactions: int
) -> None:
    assert GroupSettings.from_config(config).offset_version == offsets
    assert TransactionSettings.from_config(config).value_version == transactions


def test_an_offset_is_written_in_version_3() -> None:
    groups = GroupHarness(offset_version=3)
    groups.commit(5)
    [(key, value)] = [(one.key, one.value) for one in groups.log.all_records()]
    assert value is not None
    assert struct.unpack_from(">hqi", value) == (3, 5, -1)
    found = decode_group_record(key, value)
    assert found is not None
    assert found.key == ("g", "t", 0)


def test_a_transaction_is_written_in_version_0() -> None:
    transactions = TransactionHarness(value_version=0)
    transactions.add(transactions.owner(), T0)
    for record in transactions.log.all_records():
        assert record.value is not None
        assert record.value[:2] == b"\0\0"
    found = decode_record(record.key, record.value)
    assert found is not None
    assert found.value is not None
    now = transactions.value()
    assert replace(found.value, previous_producer_id=now.previous_producer_id) == now


def test_the_topic_is_counted_at_each_question() -> None:
    image = image_of({})
    across = AcrossBrokers(image, 1, lambda broker_id: FakePeer())
    groups = GroupHarness(partition_count=50, topic_size=across.size_of(OFFSETS_TOPIC))
    seen = []
    for size in (0, 3, 7):
        if size:
            set_leaders(image, OFFSETS_TOPIC, [1] * size)
        seen.append(groups.coordinator.partition_for("a-group"))
    expected = [
        GroupHarness(partition_count=size).coordinator.partition_for("a-group")
        for size in (50, 3, 7)
    ]
    assert seen == expected
    assert len(set(seen)) == 3
    image.remove_topic(OFFSETS_TOPIC)
    assert groups.coordinator.partition_for("a-group") == expected[0]


def test_a_marker_here_breaks_the_guards_of_what_is_verified_elsewhere() -> None:
    across = AcrossBrokers(image_of({"t": [1]}), 1, lambda broker_id: None)
    remote = across.remote_coordinators(lambda transactional_id: 0)
    assert not remote.is_here("id")
    across.guards.on_marker(TopicPartition("t", 0), 5)  # nobody watches
