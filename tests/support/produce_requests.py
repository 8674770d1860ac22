"""The request of a client that writes one batch."""

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def one_batch(
    topic: str,
    batch: bytes,
    *,
    partition: int = 0,
    acks: int = -1,
    timeout_ms: int = 30_000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A Produce request with one batch for one partition of a topic, which it names."""
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
