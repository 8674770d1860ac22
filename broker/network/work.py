"""A coroutine whose result becomes a reply; run by workers and tasks aside.

The connection waits for it as for any `Pending`, and may end before it is done.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from broker.request import Pending
from broker.world.loop_watch import LoopWatch, attributed
from protocol.errors import KafkaError
from storage.clock import Clock

logger = logging.getLogger(__name__)


class Work(Pending):
    """A coroutine to be run, and its reply, or the `error` that the connection answers
    (decision 7)."""

    __slots__ = ("coroutine", "error", "started", "what")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], what: Callable[[], str]) -> None:
        super().__init__()
        self.coroutine = coroutine
        self.what = what
        """Names it for the log if it blocks the loop."""
        self.error: Exception | None = None
        self.started = 0.0
        """Monotonic seconds at which it began; 0 before."""

    async def perform(self, clock: Clock, watch: LoopWatch) -> None:
        """Run the coroutine and complete the reply; if cancelled, it is never completed."""
        reply = None
        self.started = clock.monotonic()
        try:
            reply = await attributed(self.coroutine, watch, self.what)
        except Exception as error:
            self.error = error
            if self.abandoned and not isinstance(error, KafkaError):
                logger.error("A request whose client had gone failed", exc_info=error)
        if self.abandoned and isinstance(reply, Pending):
            reply.abandon()
        self.complete(reply)
