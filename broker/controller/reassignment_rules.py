"""May these brokers become a partition's replicas, and what is a reassignment to them?

Pure. Sources: `KafkaController.validateReplicas`, `maybeBuildReassignment` (3.9).
"""

from collections.abc import Collection

from broker.cluster.replica_assignment import ReplicaAssignment
from protocol.errors import ErrorCode, KafkaError


def check_target(
    current: ReplicaAssignment, target: tuple[int, ...], live: Collection[int]
) -> None:
    """Raises KafkaError INVALID_REPLICA_ASSIGNMENT if the API does not allow `target`.

    A target may have brokers that are gone if they have the partition already.
    """
    if not target:
        raise _refused("Empty replica list specified in partition reassignment.")
    if len(set(target)) != len(target):
        raise _refused(
            "Duplicate replica ids in partition reassignment replica list: "
            f"{', '.join(map(str, target))}"
        )
    if any(broker_id < 0 for broker_id in target):
        raise _refused(f"Invalid broker id in replica list: {', '.join(map(str, target))}")
    adding = current.reassigned_to(target).adding
    if not all(broker_id in live for broker_id in adding):
        raise _refused(
            "Replica assignment has brokers that are not alive. Replica list: "
            f"{', '.join(map(str, adding))}, live broker list: "
            f"{', '.join(map(str, sorted(live)))}"
        )


def check_size(current: ReplicaAssignment, target: tuple[int, ...]) -> None:
    """Raises KafkaError INVALID_REPLICATION_FACTOR if `target` has another number of replicas.

    Source: `ReplicationControlManager.validatePartitionReplicationFactorUnchanged` (4.4).
    """
    before = len(current.target)
    if len(target) != before:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {before} to {len(target)}",
        )


def reassignment(
    current: ReplicaAssignment, target: tuple[int, ...] | None
) -> ReplicaAssignment | None:
    """Begin a reassignment to `target`, or with None take back the one that is under way.

    Returns None if there is nothing to take back.
    """
    if target is not None:
        return current.reassigned_to(target)
    return current.reassigned_to(current.origin) if current.is_being_reassigned else None


def is_complete(assignment: ReplicaAssignment, isr: Collection[int]) -> bool:
    """Whether all target replicas are in sync, or nothing is under way."""
    return not assignment.is_being_reassigned or set(assignment.target) <= set(isr)


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
