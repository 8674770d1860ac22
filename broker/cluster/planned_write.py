"""A write that is planned from what the tree holds, and planned again if others were faster."""

from collections.abc import Callable, Sequence
from typing import Final

from broker.cluster.metadata_store import (
    MetadataStore,
    NodeExistsError,
    NodeMissingError,
    NodeNotEmptyError,
    TreeOperation,
    VersionMismatchError,
)
from storage.waits import Work

ATTEMPTS: Final = 50
"""How often a write is planned that others are in the way of; each time one of them got on."""
IN_THE_WAY: Final = (VersionMismatchError, NodeExistsError, NodeMissingError, NodeNotEmptyError)


async def write_planned(
    store: MetadataStore, plan: Callable[[], Work[Sequence[TreeOperation]]]
) -> None:
    """Make the changes that `plan` returns, which names the versions that it has read; or none.

    Raises what `plan` raises, and MetadataStoreError.
    """
    for attempt in range(1, ATTEMPTS + 1):
        operations = await plan()
        try:
            if operations:
                await store.apply(operations)
        except IN_THE_WAY:
            if attempt == ATTEMPTS:
                raise
        else:
            return
