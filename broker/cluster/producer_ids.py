"""Producer ids, which are never used twice, across restarts and brokers.

Ids are taken in blocks of 1000. A block is recorded in /latest_producer_id_block before any id of
it is handed out, so a crash wastes ids and never repeats one. Blocks come (`BlockSource`):

* in a broker that stands alone, and in the controller of a cluster, from the store
  (`StoredBlocks`, Kafka's `ZkProducerIdManager`);
* in the other brokers of a cluster, from the controller, by AllocateProducerIds
  (`broker.coordinator.allocated_blocks`).

A single broker's store may be older than its logs (lost, or restored from a copy). So ids found in
the logs at a start are noted (`note_used`), and new ids are above them: if an id were used twice, a
new producer's first batches would count as duplicates of the old one's (S-IDEM-1). In a cluster ids
of all brokers are in the logs of each, and the store alone is believed.
"""

import logging
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from broker.cluster.metadata_store import (
    Create,
    MetadataStore,
    MetadataStoreError,
    NodeExistsError,
    Put,
    VersionMismatchError,
)
from broker.cluster.tree_values import (
    PRODUCER_ID_BLOCK,
    decode_producer_id_block,
    encode_producer_id_block,
)
from protocol.errors import ErrorCode, KafkaError
from storage.waits import Lock, Work

log = logging.getLogger(__name__)

Decided = TypeVar("Decided")

BLOCK_SIZE: Final = 1000
_LAST_ID: Final = (1 << 63) - 1
BELIEVED_BELOW: Final = 1 << 62
"""A client may write any id into a log. An id above this was not handed out here and is ignored;
otherwise it could use up all ids."""


class ProducerIdsUsedUp(KafkaError):
    """The block is used up: `make_ready` must be awaited. Clients that get this code ask again."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "A block of ids is being taken.")


class BlockSource(Protocol):
    """A source of blocks of ids."""

    @property
    def believes_logs(self) -> bool:
        """Whether ids that are found in logs count as used, whatever the source says."""
        ...

    async def next_block(self, unused_from: int) -> tuple[int, int]:
        """Take a block for this broker alone; return its (first, last) id, the first at least
        `unused_from` if it believes the logs. Raises KafkaError."""
        ...


class StoredBlocks:
    """Takes blocks from the metadata store; several brokers may take at the same time."""

    believes_logs = True

    def __init__(self, store: MetadataStore, broker_id: int) -> None:
        self._store = store
        self._broker_id = broker_id

    async def next_block(self, unused_from: int = 0) -> tuple[int, int]:
        """See `BlockSource`. Raises UNKNOWN_SERVER_ERROR if all ids are used up or the store has
        failed."""
        try:
            while True:
                block = await self._try_to_take(unused_from)
                if block is not None:
                    return block
        except MetadataStoreError as error:
            log.error("No producer ids can be had: %s", error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error

    async def _try_to_take(self, unused_from: int) -> tuple[int, int] | None:
        """None if another broker took the block meanwhile."""
        node = await self._store.get(PRODUCER_ID_BLOCK)
        first = 0 if node is None else decode_producer_id_block(node.value) + 1
        if first < unused_from:
            log.warning(
                "Producer ids go on at %d: the metadata store (%d) is older than the logs",
                unused_from,
                first,
            )
            first = unused_from
        last = first + BLOCK_SIZE - 1
        if last > _LAST_ID:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "All producer ids have been handed out; no new producer can be served.",
            )
        value = encode_producer_id_block(self._broker_id, first, last)
        try:
            if node is None:
                await self._store.apply([Create(PRODUCER_ID_BLOCK, value)])
            else:
                await self._store.apply([Put(PRODUCER_ID_BLOCK, value, node.version)])
        except (NodeExistsError, VersionMismatchError):
            return None
        return first, last


class ProducerIdAllocator:
    """Hands out producer ids; refills itself from its source."""

    def __init__(self, blocks: BlockSource) -> None:
        self._blocks = blocks
        self._next = 0
        self._end = 0
        self._unused_from = 0
        self._refilling = Lock()

    def note_used(self, producer_id: int) -> None:
        """Note an id that is in use: new ids are above it, if the source believes the logs."""
        if self._blocks.believes_logs and self._unused_from <= producer_id < BELIEVED_BELOW:
            self._unused_from = producer_id + 1

    def next_id(self) -> int:
        """Return the next id. Raises ProducerIdsUsedUp: then await `make_ready`."""
        producer_id = max(self._next, self._unused_from)
        if producer_id >= self._end:
            raise ProducerIdsUsedUp
        self._next = producer_id + 1
        return producer_id

    async def take(self) -> int:
        """Wait for and return the next id. Raises as `make_ready`."""
        while True:
            try:
                return self.next_id()
            except ProducerIdsUsedUp:
                await self.make_ready()

    async def make_ready(self) -> None:
        """Take blocks until at least one id is at hand. Raises KafkaError, as the source does."""
        async with self._refilling:
            while max(self._next, self._unused_from) >= self._end:
                first, last = await self._blocks.next_block(self._unused_from)
                self._next, self._end = first, last + 1


async def decide_with_ids(
    producer_ids: ProducerIdAllocator, decide: Callable[[], Work[Decided]]
) -> Decided:
    """Await `decide`; if ids are used up it has changed nothing: record a block and do it again.

    Raises KafkaError.
    """
    try:
        return await decide()
    except ProducerIdsUsedUp:
        await producer_ids.make_ready()
        return await decide()
