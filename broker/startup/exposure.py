"""Warns at start-up of listeners that others can reach, and use or listen to; and of super users
that are probably others than those that are meant."""

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from broker.world.addresses import is_every_interface, is_loopback
from broker.world.transport import BoundListener
from config.broker_config import BrokerConfig

if TYPE_CHECKING:
    from config.sasl_settings import MechanismSettings

logger = logging.getLogger(__name__)

_SAYS_THE_SECRET: Final = frozenset({"PLAIN", "OAUTHBEARER"})
"""Mechanisms by which a client sends its password or token itself."""
_TWO_IN_ONE: Final = re.compile(r",\s*User:")


def tell_of_open_listeners(bound: Sequence[BoundListener], config: BrokerConfig) -> None:
    """Log a warning for each listener beyond loopback that asks nobody, or without encryption.

    A client that must show a certificate says who it is; one that may does not have to. A token
    that anybody can make says nothing.
    """
    for listener in bound:
        if is_loopback(listener.address):
            continue
        if listener.protocol.startswith("SASL_"):
            _tell_of_mechanisms(listener, config.sasl[listener.name].mechanisms)
        elif not _asks_for_certificates(listener, config):
            _tell_of_strangers(listener)


def _asks_for_certificates(listener: BoundListener, config: BrokerConfig) -> bool:
    return (
        listener.protocol == "SSL"
        and config.of_listener(listener.name, "ssl.client.auth") == "required"
    )


def _tell_of_mechanisms(listener: BoundListener, mechanisms: "Sequence[MechanismSettings]") -> None:
    from config.sasl_settings import UnsecuredTokens  # most brokers do not need it

    unsecured = [one.name for one in mechanisms if isinstance(one.how, UnsecuredTokens)]
    if unsecured:
        _tell_of_strangers(listener, " (OAUTHBEARER lets in whoever a token names, unverified)")
    said = [
        one.name for one in mechanisms if one.name in _SAYS_THE_SECRET and one.name not in unsecured
    ]
    if said and listener.protocol == "SASL_PLAINTEXT":
        logger.warning(
            "Listener %s is %s and takes what %s sends unencrypted: who hears it can be that"
            " client. With SASL_SSL nobody can; with SCRAM no password is sent.",
            listener,
            _place(listener),
            " or ".join(said),
        )


def _tell_of_strangers(listener: BoundListener, why: str = "") -> None:
    logger.warning(
        "Listener %s is %s and asks nobody who they are%s: all who reach this machine may read,"
        " write and delete. listeners=%s://127.0.0.1:%d serves this machine only.",
        listener,
        _place(listener),
        why,
        listener.name,
        listener.port,
    )


def _place(listener: BoundListener) -> str:
    if is_every_interface(listener.address):
        return "on every interface"
    return "on an address of the network"


def tell_of_joined_super_users(config: BrokerConfig) -> None:
    """Log a warning for each super user that looks like several.

    Only semicolons separate them, because names of certificates have commas (Kafka's
    `StandardAuthorizer.getConfiguredSuperUsers`).
    """
    for principal in sorted(filter(_TWO_IN_ONE.search, config.super_users)):
        logger.warning(
            "super.users names one principal, %s. Semicolons separate principals: if these are"
            " several, none of them is a super user.",
            principal,
        )
