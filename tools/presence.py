"""Detects that the broker went away, for commands that run for long.

librdkafka retries for ever without a message. After a sign of trouble (its error callback, or a
request that failed) `Presence` asks the broker directly (`tools.reachability`). A broker that does
not answer for `AWAY_S` seconds has gone; a restart takes less.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from tools.errors import CommandError
from tools.reachability import require_broker

AWAY_S: Final = 5.0


class Presence:
    """Watches one client's broker."""

    def __init__(
        self,
        settings: dict[str, Any],
        *,
        probe: Callable[[dict[str, Any]], None] = require_broker,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings: Final = settings
        self._probe: Final = probe
        self._clock: Final = clock
        self._doubt = False
        self._away_since: float | None = None

    def on_error(self, error: Any) -> None:
        """Note an error: `error_cb` of a client."""
        self._doubt = True

    def doubt(self) -> None:
        """Note that a request failed."""
        self._doubt = True

    def check(self) -> None:
        """After a sign of trouble, ask the broker. Raises CommandError if it is away too long."""
        if not self._doubt:
            return
        now = self._clock()
        try:
            self._probe(self._settings)
        except CommandError as error:
            if self._away_since is None:
                self._away_since = now
            elif now - self._away_since >= AWAY_S:
                reason = str(error).partition(". Is a broker")[0]
                raise CommandError(f"the broker went away: {reason}") from None
        else:
            self._doubt, self._away_since = False, None
