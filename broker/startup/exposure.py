"""Warns at start-up of listeners that anybody can reach and use without authentication."""

import logging
from collections.abc import Sequence
from typing import Final

from broker.world.transport import BoundListener

logger = logging.getLogger(__name__)

_EVERY_INTERFACE: Final = frozenset({"", "0.0.0.0", "::"})


def tell_of_open_listeners(bound: Sequence[BoundListener]) -> None:
    """Log a warning for each listener on all interfaces without authentication."""
    for listener in bound:
        if listener.host in _EVERY_INTERFACE and not listener.protocol.startswith("SASL_"):
            logger.warning(
                "Listener %s is on every interface and asks nobody who they are: all who reach this"
                " machine may read, write and delete. listeners=%s://127.0.0.1:%d serves this"
                " machine only.",
                listener,
                listener.name,
                listener.port,
            )
