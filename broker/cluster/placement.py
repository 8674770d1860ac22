"""Which brokers hold which replicas of a new topic.

Round robin over the brokers from a starting point, further replicas shifted by a growing step, as
in Kafka's `AdminUtils.assignReplicasToBrokers`. Racks are ignored: they matter only with several
brokers.
"""

from collections.abc import Sequence

from protocol.errors import ErrorCode, KafkaError


def check_replication_factor(replication_factor: int, live_brokers: int) -> None:
    """Raises KafkaError INVALID_REPLICATION_FACTOR (S-META-2)."""
    if replication_factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
        )
    if replication_factor > live_brokers:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: "
            f"{live_brokers}.",
        )


def assign_replicas(
    brokers: Sequence[int], partitions: range, replication_factor: int, *, start: int = 0
) -> dict[int, tuple[int, ...]]:
    """Replicas of each partition, the first being the preferred leader."""
    count = len(brokers)
    if count == 1:
        return dict.fromkeys(partitions, tuple(brokers))
    result: dict[int, tuple[int, ...]] = {}
    for partition in partitions:
        first = (partition + start) % count
        step = 1 + (partition // count) % max(count - 1, 1)
        following = (
            brokers[(first + 1 + (step - 1 + index) % max(count - 1, 1)) % count]
            for index in range(replication_factor - 1)
        )
        result[partition] = (brokers[first], *following)
    return result


def check_assignment(
    assignment: dict[int, tuple[int, ...]], live_brokers: Sequence[int], *, first_partition: int = 0
) -> None:
    """Check a client's own assignment. Raises KafkaError INVALID_REPLICA_ASSIGNMENT."""

    def refuse(message: str) -> None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)

    if not assignment:
        refuse("The manual partition assignment is empty.")
    expected = set(range(first_partition, first_partition + len(assignment)))
    if set(assignment) != expected:
        refuse("partitions should be a consecutive 0-based integer sequence")
    sizes = {len(replicas) for replicas in assignment.values()}
    if len(sizes) != 1 or 0 in sizes:
        refuse("All partitions should have the same number of replicas, and at least one.")
    for replicas in assignment.values():
        if len(set(replicas)) != len(replicas):
            refuse(f"Duplicate brokers not allowed in replica assignment: {list(replicas[:100])}")
        unknown = [broker for broker in replicas if broker not in live_brokers]
        if unknown:
            refuse(
                f"The manual partition assignment includes broker {unknown[0]}, but no such broker "
                "is registered."
            )
