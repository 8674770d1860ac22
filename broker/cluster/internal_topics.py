"""How the internal topics are made.

Kafka refuses to make them with fewer live brokers than the configured replication factor. With the
default configuration a stand-alone broker would then never have groups, so the factor (and for
transactions the minimum in-sync replicas) is clamped to the live brokers (S-GRP-5, decision 69).
"""

from broker.cluster.topic_plan import NewTopic
from config.broker_config import BrokerConfig
from protocol.types import OFFSETS_TOPIC, TRANSACTION_TOPIC


def internal_topic(name: str, broker: BrokerConfig, live_brokers: int) -> NewTopic | None:
    """Return how to make the internal topic `name`; None for an ordinary topic."""
    if name == OFFSETS_TOPIC:
        return NewTopic(
            name=name,
            partitions=broker.offsets_topic_num_partitions,
            replication_factor=min(broker.offsets_topic_replication_factor, live_brokers),
            config={
                "compression.type": "producer",
                "cleanup.policy": "compact",
                "segment.bytes": str(broker.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTION_TOPIC:
        return NewTopic(
            name=name,
            partitions=broker.transaction_state_log_num_partitions,
            replication_factor=min(broker.transaction_state_log_replication_factor, live_brokers),
            config={
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(min(broker.transaction_state_log_min_isr, live_brokers)),
                "segment.bytes": str(broker.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    return None


def topic_wished(name: str, broker: BrokerConfig, live_brokers: int) -> NewTopic:
    """Return how to make the topic `name`, internal or not, with the broker's defaults."""
    return internal_topic(name, broker, live_brokers) or NewTopic(name=name)
