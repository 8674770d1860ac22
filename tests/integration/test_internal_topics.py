"""`__consumer_offsets` deleted by an operator and made anew by the next client.

A new client for each step: librdkafka 2.16 keeps a coordinator that is gone, and waits for it.
"""

from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.broker_process import BrokerProcess
from tests.support.topics import make_topic


def commit(broker: BrokerProcess, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, offset)])
    admin.alter_consumer_group_offsets([wanted])["g"].result(15)


def committed(broker: BrokerProcess) -> list[int]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = ConsumerGroupTopicPartitions("g")
    found = admin.list_consumer_group_offsets([asked])["g"].result(15)
    return [place.offset for place in found.topic_partitions]


def test_an_offsets_topic_made_anew_begins_empty(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        make_topic(broker.bootstrap, "t")
        commit(broker, 5)
        assert committed(broker) == [5]
        admin.delete_topics(["__consumer_offsets"])["__consumer_offsets"].result(15)
        assert committed(broker) == []
        commit(broker, 7)
        assert committed(broker) == [7]
        broker.restart()
        assert committed(broker) == [7]
