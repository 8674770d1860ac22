"""Hands over leadership before this broker stops: no client has to wait for a session's end.

The controller elects other leaders and takes this broker out of the ISRs; what it answers names the
partitions that are still led here. Those that have no other replica are not among them.

Source: `kafka.server.KafkaServer.controlledShutdown` (3.9).
"""

import logging
from collections.abc import Callable
from typing import Any

from broker.membership.controller_channel import ControllerChannel
from broker.peers.peer import PeerError
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.controlled_shutdown import ControlledShutdownRequest
from storage.waits import sleep

log = logging.getLogger(__name__)


async def hand_over(
    channel: ControllerChannel,
    *,
    attempts: int,
    backoff_s: float,
    longest_s: float,
    broker_id: int,
    broker_epoch: Callable[[], int],
) -> bool:
    """Ask the controller to take over; return whether it has. If not, the broker stops anyway.

    An attempt takes at most `longest_s`.
    """
    for attempt in range(1, attempts + 1):
        outcome = await _attempt(
            channel,
            ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch()),
            longest_s,
        )
        if outcome is None:
            log.info("The controller has taken over what this broker led")
            return True
        left = attempts - attempt
        log.info("Controlled shutdown: %s. %d attempts are left", outcome, left)
        if left:
            await sleep(backoff_s)
    log.warning(
        "Stopping without the controller's consent after %d attempts: clients find other leaders"
        " when the session in ZooKeeper has ended",
        attempts,
    )
    return False


async def _attempt(
    channel: ControllerChannel, request: ControlledShutdownRequest, longest_s: float
) -> str | None:
    """Ask once; return why that was not enough, or None."""
    try:
        answer: Any = await channel.ask(ApiKey.CONTROLLED_SHUTDOWN, request, timeout_s=longest_s)
    except PeerError as error:
        return str(error)
    if answer.error_code != ErrorCode.NONE:
        return f"the controller answered {ErrorCode(answer.error_code).name}"
    if answer.remaining_partitions:
        return f"{len(answer.remaining_partitions)} partitions are still led here"
    return None
