"""The state of a broker's life: Kafka's gauge `BrokerState` of `KafkaServer`.

The values are Kafka's bytes (S-START-4): dashboards and scripts compare against them.
"""

import enum
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)


class BrokerState(enum.IntEnum):
    """In the order of life."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERING_FROM_UNCLEAN_SHUTDOWN = 2
    RUNNING_AS_BROKER = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    BROKER_SHUTTING_DOWN = 7


class BrokerStateGauge:
    """The state now. Written by the server only."""

    __slots__ = ("_state", "listeners")

    def __init__(self) -> None:
        self._state = BrokerState.NOT_RUNNING
        self.listeners: list[Callable[[BrokerState], None]] = []
        """Called after each change."""

    @property
    def state(self) -> BrokerState:
        """The state now."""
        return self._state

    def move_to(self, state: BrokerState) -> None:
        """Enter a state."""
        if state is not self._state:
            logger.debug("Broker state %s -> %s", self._state.name, state.name)
            self._state = state
            for listener in self.listeners:
                listener(state)
