"""The controller's requests to brokers: for each broker a queue and one request under way.

A request is sent until it is answered, for as long as the broker is registered: its node in the
tree says that it lives, so an error of the connection is not the end of it. Requests go in order,
each after the answer to the one before, as brokers rely on (a leader's epoch must not go back).

Sources: `kafka.controller.ControllerChannelManager`, `RequestSendThread` (3.9).
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker.controller.request_batch import Outgoing
from broker.peers.peer import Peer, PeerError
from config.listener import Listener
from protocol.schema import Message
from storage.clock import Clock
from storage.distribution import FOLD, Distribution, DistributionSnapshot
from storage.waits import Signal, Work

log = logging.getLogger(__name__)

BACKOFF_S: Final = 0.1
"""Between two attempts to send a request."""
_WARNED_EVERY: Final = 100
"""Attempts between two warnings for one request, after the first one."""

Answered = Callable[[Outgoing, Message], None]
"""Called with each request and its answer; must be quick."""
Begin = Callable[[Callable[[], Work[None]]], None]
"""Has work done beside the other, in a later turn of the loop."""


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """One broker's channel in numbers."""

    queued: int
    queue_times: DistributionSnapshot
    """How long requests have waited in the queue."""


class BrokerChannel:
    """The requests to one broker. Ends with `close`, or when the broker is registered anew."""

    def __init__(self, peer: Peer, clock: Clock, timeout_s: float, answered: Answered) -> None:
        self._peer = peer
        self._clock = clock
        self._timeout_s = timeout_s
        self._answered = answered
        self._queue: deque[tuple[Outgoing, float]] = deque()
        self._news: Signal[None] = Signal()
        self._closed: Signal[None] = Signal()
        self._queue_times = Distribution()

    def send(self, outgoing: Outgoing) -> None:
        """Queue a request."""
        self._queue.append((outgoing, self._clock.monotonic()))
        self._news.fire()

    def close(self) -> None:
        """Drop what is queued, and the answer to what is under way."""
        self._queue.clear()
        self._closed.fire()
        self._news.fire()
        self._peer.close()

    async def run(self) -> None:
        """Send what is queued until closed."""
        while not self._closed.fired:
            if not self._queue:
                self._news = Signal()
                await self._news
                continue
            outgoing, since = self._queue.popleft()
            now = self._clock.monotonic()
            self._queue_times.note(now - since)
            if len(self._queue_times.waiting) >= FOLD:
                self._queue_times.fold(now)
            answer = await self._ask(outgoing)
            if answer is not None and not self._closed.fired:
                self._answered(outgoing, answer)

    async def _ask(self, outgoing: Outgoing) -> Message | None:
        attempts = 0
        while not self._closed.fired:
            try:
                return await self._peer.ask(
                    outgoing.key,
                    outgoing.message,
                    version=outgoing.version,
                    timeout_s=self._timeout_s,
                )
            except PeerError as error:
                if attempts % _WARNED_EVERY == 0 and not self._closed.fired:
                    log.warning(
                        "%s to broker %d failed, trying again: %s",
                        outgoing.key.name,
                        outgoing.broker_id,
                        error,
                    )
                attempts += 1
            await self._closed.within(BACKOFF_S)
        return None

    def statistics(self) -> ChannelStatistics:
        """A snapshot."""
        times = self._queue_times.snapshot(self._clock.monotonic())
        return ChannelStatistics(len(self._queue), times)


class Channels:
    """The channels to all registered brokers."""

    def __init__(
        self, connect: Callable[[int, Listener], Peer], clock: Clock, begin: Begin
    ) -> None:
        """`connect` makes a connection to a broker, by its id and endpoint."""
        self._connect = connect
        self._clock = clock
        self._begin = begin
        self._channels: dict[int, BrokerChannel] = {}

    def open(
        self, broker_id: int, endpoint: Listener | None, timeout_s: float, answered: Answered
    ) -> None:
        """Make a channel to a broker, in the place of the one to its previous life.

        `endpoint`: the broker's on the listener on which brokers talk; None if it has none.
        """
        self.close(broker_id)
        if endpoint is None:
            log.error("Broker %d has no listener that brokers talk on", broker_id)
            return
        channel = BrokerChannel(
            self._connect(broker_id, endpoint), self._clock, timeout_s, answered
        )
        self._channels[broker_id] = channel
        self._begin(channel.run)

    def close(self, broker_id: int) -> None:
        """End the channel to a broker, if there is one."""
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()

    def close_all(self) -> None:
        """End all channels."""
        for broker_id in list(self._channels):
            self.close(broker_id)

    def send(self, outgoing: Outgoing) -> None:
        """Queue a request; dropped, with a warning, if there is no channel to its broker."""
        channel = self._channels.get(outgoing.broker_id)
        if channel is None:
            log.warning(
                "Not sending %s to broker %d: it is offline",
                outgoing.key.name,
                outgoing.broker_id,
            )
        else:
            channel.send(outgoing)

    def statistics(self) -> dict[int, ChannelStatistics]:
        """By broker."""
        return {broker_id: one.statistics() for broker_id, one in self._channels.items()}
