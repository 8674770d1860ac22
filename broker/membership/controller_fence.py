"""Refuses requests of a controller that has been succeeded, and those meant for an earlier life.

A controller has an epoch, which grows with every election; so has a broker, with every registration
at /brokers/ids. A request with an older one is late: its sender did not know yet (KIP-380). A newer
broker epoch is accepted: the controller may learn of a registration before this broker does.

Source: `kafka.server.ReplicaManager.controllerEpoch`, `ZkBrokerEpochManager.isBrokerEpochStale`.
"""

import logging
from typing import Final

from protocol.errors import ErrorCode, KafkaError
from storage.waits import Lock

log = logging.getLogger(__name__)

UNKNOWN_EPOCH: Final = -1
"""The epoch in requests from before KIP-380, and that of a broker that is not registered."""


class ControllerFence:
    """The epochs, and whose turn it is: orders of the controller are carried out one at a time."""

    def __init__(self) -> None:
        self.broker_epoch = UNKNOWN_EPOCH
        """The epoch of this broker's registration, written by `registration`."""
        self.controller_epoch = 0
        """The highest epoch that an order had."""
        self.one_at_a_time = Lock()
        """Held while an order is carried out."""

    def check_broker_epoch(self, epoch: int) -> None:
        """Raise KafkaError STALE_BROKER_EPOCH for a request to an earlier registration."""
        if epoch != UNKNOWN_EPOCH and epoch < self.broker_epoch:
            log.info("Refused a request for broker epoch %d; it is %d", epoch, self.broker_epoch)
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)

    def admit(self, controller_id: int, epoch: int) -> None:
        """Note a controller's epoch. Raises KafkaError STALE_CONTROLLER_EPOCH for an older one.

        Called with `one_at_a_time` held.
        """
        if epoch < self.controller_epoch:
            log.warning(
                "Refused an order of controller %d with epoch %d; the latest known epoch is %d",
                controller_id,
                epoch,
                self.controller_epoch,
            )
            raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH)
        self.controller_epoch = epoch
