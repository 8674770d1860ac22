"""Whether the broker is still there, for commands that run for long.

librdkafka tries again for ever and says nothing. Where it doubts (its error callback, or a request
that failed), the broker is asked directly (`tools.reachability`); one that does not answer for
`AWAY_S` seconds is gone, and one that was only restarted is not.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from tools.errors import CommandError
from tools.reachability import require_broker

AWAY_S: Final = 5.0


class Presence:
    """Doubts, and what came of them."""

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
        """For `error_cb` of a client, and for errors that it returns."""
        self._doubt = True

    def doubt(self) -> None:
        """A request failed."""
        self._doubt = True

    def check(self) -> None:
        """Raises CommandError when the broker has been away for too long."""
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
