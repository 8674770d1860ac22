"""Writes the metadata tree and waits until this broker has applied the change.

For the controller: one change at a time, and a write with its outcome.
"""

from collections.abc import Mapping, Sequence

from broker.cluster.image_applier import ImageApplier
from broker.cluster.image_delta import DeltaOutcome
from broker.cluster.metadata_store import MetadataStore, TreeOperation
from broker.cluster.refusals import store_errors_told
from storage.waits import Lock


class TreeChanges:
    """Writes the tree and waits for the applier."""

    def __init__(self, store: MetadataStore, applier: ImageApplier) -> None:
        self.one_at_a_time = Lock()
        """Held from before a change is planned until it is applied."""
        self._store = store
        self._applier = applier

    async def write(self, operations: Sequence[TreeOperation]) -> Mapping[str, DeltaOutcome]:
        """Write the tree, wait until it is applied, and return the outcomes by topic.

        Raises KafkaError UNKNOWN_SERVER_ERROR if the store refused the write. A refused change is
        undone by another write; a crash before that leaves the topic in the tree, though its client
        got no answer, and the next start opens it.
        """
        with store_errors_told(), self._applier.heard() as outcomes:
            await self._store.apply(operations)
            await self._applier.catch_up()
        return outcomes
