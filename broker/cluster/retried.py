"""Work on the metadata tree, done on request, and tried again until the store has taken it."""

import logging
from collections.abc import Callable
from typing import Final

from broker.cluster.metadata_store import MetadataStoreError
from storage.waits import Signal, Work, sleep

log = logging.getLogger(__name__)

_AGAIN_S: Final = 1.0
"""The wait after an attempt that failed."""


class Retried:
    """Work of one kind. A request that comes while it is done has it done once more."""

    def __init__(self, complaint: str) -> None:
        """`complaint`: what the log says when an attempt has failed, before the reason."""
        self._complaint = complaint
        self._asked: Signal[None] = Signal()

    def ask(self) -> None:
        """Have the work done."""
        self._asked.fire()

    async def run(self, work: Callable[[], Work[None]]) -> None:
        """Do `work` whenever `ask` was called, until ended."""
        while True:
            await self._asked
            self._asked = Signal()
            try:
                await work()
            except MetadataStoreError as error:
                self.complain(error)
                self.ask()
                await sleep(_AGAIN_S)

    def complain(self, error: MetadataStoreError) -> None:
        """Log why the work was not done."""
        log.warning("%s: %s", self._complaint, error)
