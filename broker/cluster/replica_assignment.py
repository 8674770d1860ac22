"""Which brokers have a replica of a partition, and how a reassignment changes that. Pure.

While a partition is reassigned, `replicas` are the target's in their order and then the others of
the original ones, so that the next controller can continue the reassignment or take it back. A
cancelled reassignment does not restore the order of the original replicas; Kafka's does not either.

Source: `kafka.controller.ReplicaAssignment` (3.9).
"""

from typing import NamedTuple


class ReplicaAssignment(NamedTuple):
    """The replicas of one partition."""

    replicas: tuple[int, ...] = ()
    """Broker ids; the first is the preferred leader. Empty: there is no such partition."""
    adding: tuple[int, ...] = ()
    """Those of `replicas` that the reassignment under way adds."""
    removing: tuple[int, ...] = ()
    """Those of `replicas` that the reassignment under way removes."""

    @property
    def is_being_reassigned(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas from before the reassignment."""
        return without(self.replicas, self.adding) if self.adding else self.replicas

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that the reassignment leads to."""
        return without(self.replicas, self.removing) if self.removing else self.replicas

    def reassigned_to(self, target: tuple[int, ...]) -> "ReplicaAssignment":
        """Begin a reassignment to `target`, in the place of the one that is under way, if any."""
        origin = self.origin
        everyone = tuple(dict.fromkeys(target + origin))
        return ReplicaAssignment(everyone, without(everyone, origin), without(everyone, target))

    def without_replica(self, broker_id: int) -> "ReplicaAssignment":
        """Take one broker out."""
        gone = (broker_id,)
        return ReplicaAssignment(
            without(self.replicas, gone), without(self.adding, gone), without(self.removing, gone)
        )


def without(brokers: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    """Return `brokers` in their order, except those in `gone`."""
    return tuple(broker for broker in brokers if broker not in gone)
