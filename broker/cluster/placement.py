"""Which brokers hold which replicas of a new topic.

Partitions go round robin over the brokers from a starting point, further replicas are shifted by a
growing step. If the brokers have racks, the replicas of a partition are on different racks, as far
as there are enough.

Source: `org.apache.kafka.admin.AdminUtils.assignReplicasToBrokers` (3.9).
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError

Racks = Mapping[int, str | None]
"""Rack by broker id; None: it has none."""

_DRAWN_BELOW: Final = 1 << 16


class Start(NamedTuple):
    """The start of a placement; different starts let topics of few partitions use all brokers."""

    first: int = 0
    """The broker that leads partition 0, by its place among them."""
    shift: int = 0
    """How far from the leader the second replica is, less one."""

    @classmethod
    def drawn(cls, random: Random) -> "Start":
        """A start by chance."""
        return cls(random.randrange(_DRAWN_BELOW), random.randrange(_DRAWN_BELOW))


FROM_THE_FIRST: Final = Start()


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
    brokers: Sequence[int],
    partitions: range,
    replication_factor: int,
    *,
    start: Start = FROM_THE_FIRST,
    racks: Racks | None = None,
) -> dict[int, tuple[int, ...]]:
    """Replicas of each partition, the first being the preferred leader.

    Raises KafkaError if some brokers have a rack and others have not.
    """
    if len(brokers) == 1:
        return dict.fromkeys(partitions, tuple(brokers))
    of_broker = _racks_of(brokers, racks or {})
    if of_broker is not None:
        brokers = _alternating(of_broker)
    count = len(brokers)
    shift = start.shift
    result: dict[int, tuple[int, ...]] = {}
    for partition in partitions:
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start.first) % count
        if of_broker is None:
            places = [
                first,
                *(_place(first, shift, j, count) for j in range(replication_factor - 1)),
            ]
            result[partition] = tuple(brokers[place] for place in places)
        else:
            result[partition] = _over_racks(brokers, of_broker, first, shift, replication_factor)
    return result


def _place(first: int, shift: int, nth: int, count: int) -> int:
    """The place of the follower number `nth`; never that of the leader."""
    return (first + 1 + (shift + nth) % (count - 1)) % count


def _racks_of(brokers: Sequence[int], racks: Racks) -> dict[int, str] | None:
    """The rack of each broker; None if none has one."""
    known = {broker: rack for broker in brokers if (rack := racks.get(broker)) is not None}
    if known and len(known) < len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    return known or None


def _alternating(racks: Mapping[int, str]) -> list[int]:
    """The brokers, so that neighbours are on different racks."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    rows = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(map(len, rows))
    return [row[place] for place in range(longest) for row in rows if place < len(row)]


def _over_racks(
    brokers: Sequence[int], racks: Mapping[int, str], first: int, shift: int, replicas: int
) -> tuple[int, ...]:
    """One partition's replicas: a broker is passed over while another rack has none of them, or
    when it has one already."""
    count, rack_count = len(brokers), len(set(racks.values()))
    chosen = [brokers[first]]
    used = {racks[chosen[0]]}
    nth = 0
    while len(chosen) < replicas:
        broker = brokers[_place(first, shift * rack_count, nth, count)]
        nth += 1
        if broker not in chosen and (racks[broker] not in used or len(used) == rack_count):
            chosen.append(broker)
            used.add(racks[broker])
    return tuple(chosen)


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
