"""Warns at start-up of listeners that anybody can reach, and use or listen to."""

import logging
from collections.abc import Sequence
from typing import Final

from broker.world.transport import BoundListener
from config.broker_config import BrokerConfig

logger = logging.getLogger(__name__)

_EVERY_INTERFACE: Final = frozenset({"", "0.0.0.0", "::"})
_SAYS_THE_SECRET: Final = frozenset({"PLAIN", "OAUTHBEARER"})
"""Mechanisms by which a client sends its password or token itself."""


def tell_of_open_listeners(bound: Sequence[BoundListener], config: BrokerConfig) -> None:
    """Log a warning for each listener on all interfaces that asks nobody, or without encryption.

    A client that must show a certificate says who it is; one that may does not have to.
    """
    for listener in bound:
        if listener.host not in _EVERY_INTERFACE:
            continue
        if listener.protocol.startswith("SASL_"):
            if listener.protocol == "SASL_PLAINTEXT":
                _tell_of_secrets(listener, config)
            continue
        if (
            listener.protocol == "SSL"
            and config.of_listener(listener.name, "ssl.client.auth") == "required"
        ):
            continue
        logger.warning(
            "Listener %s is on every interface and asks nobody who they are: all who reach this"
            " machine may read, write and delete. listeners=%s://127.0.0.1:%d serves this"
            " machine only.",
            listener,
            listener.name,
            listener.port,
        )


def _tell_of_secrets(listener: BoundListener, config: BrokerConfig) -> None:
    offered = [mechanism.name for mechanism in config.sasl[listener.name].mechanisms]
    said = [name for name in offered if name in _SAYS_THE_SECRET]
    if said:
        logger.warning(
            "Listener %s is on every interface and takes what %s sends unencrypted: who hears it"
            " can be that client. With SASL_SSL nobody can; with SCRAM no password is sent.",
            listener,
            " or ".join(said),
        )
