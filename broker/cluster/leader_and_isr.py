"""The leader of a partition and its replicas in sync: the value of its state node. Pure.

Source: `org.apache.kafka.metadata.LeaderAndIsr`, `kafka.controller.LeaderIsrAndControllerEpoch`.
"""

from typing import Final, NamedTuple

LEADER_DURING_DELETE: Final = -2
"""The leader that brokers get for a partition whose topic is being deleted."""
NO_EPOCH: Final = -1
EPOCH_DURING_DELETE: Final = -2
"""The leader epoch of a StopReplica for a topic that is being deleted: it overrides any epoch."""


class LeaderAndIsr(NamedTuple):
    """A partition's leadership."""

    leader: int
    """Broker id, or -1 while there is none."""
    isr: tuple[int, ...]
    leader_epoch: int = 0
    partition_epoch: int = 0
    """The version of the node that holds this: each change of it counts one."""
    controller_epoch: int = 0
    """The epoch of the controller that wrote it."""
    recovering: bool = False
    """Whether the leader was elected uncleanly and has not yet told that it recovered."""

    def led_by(self, leader: int, isr: tuple[int, ...] | None = None) -> "LeaderAndIsr":
        """A new leader, or the same in a new epoch; with `isr`, a new ISR."""
        return self._replace(
            leader=leader, isr=self.isr if isr is None else isr, leader_epoch=self.leader_epoch + 1
        )
