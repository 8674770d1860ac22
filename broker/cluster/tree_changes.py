"""Changes of the metadata tree that wait until this broker has followed them.

For the controller: one change at a time, a write with what came of it, and a write that takes
another one back.
"""

from collections.abc import Mapping, Sequence

import trio

from broker.cluster.image_applier import ImageApplier
from broker.cluster.image_delta import Outcome
from broker.cluster.metadata_store import MetadataStore, Operation
from broker.cluster.refusals import store_errors_told


class TreeChanges:
    """Writes the tree and waits for the applier."""

    def __init__(self, store: MetadataStore, applier: ImageApplier) -> None:
        self.one_at_a_time = trio.Lock()
        """Held from before a change is planned until it holds everywhere."""
        self._store = store
        self._applier = applier

    async def write(self, operations: Sequence[Operation]) -> Mapping[str, Outcome]:
        """Write the tree; what came of it, by topic, when this broker has followed.

        Raises KafkaError UNKNOWN_SERVER_ERROR when nothing was written.
        """
        with store_errors_told(), self._applier.heard() as outcomes:
            await self._store.apply(operations)
            await self._applier.catch_up()
        return outcomes

    async def take_back(self, operations: Sequence[Operation]) -> None:
        """Write what undoes a write that was refused. Raises KafkaError as `write` does.

        A crash before this leaves a topic that nobody was promised; the next start opens it.
        """
        await self.write(operations)
