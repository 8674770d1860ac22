"""Writes the metadata tree and waits until this broker has applied the change.

For the controller: one change at a time, a write with its outcome, and a write that undoes another.
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

        Raises KafkaError UNKNOWN_SERVER_ERROR if the store refused the write.
        """
        with store_errors_told(), self._applier.heard() as outcomes:
            await self._store.apply(operations)
            await self._applier.catch_up()
        return outcomes

    async def take_back(self, operations: Sequence[TreeOperation]) -> None:
        """Undo a write that was refused. Raises KafkaError as `write` does.

        A crash before this leaves the topic in the tree, though its client got no answer; the next
        start opens it.
        """
        await self.write(operations)
