"""Tells the controller that a log directory of this broker has failed.

It then asks this broker about each of its partitions (LeaderAndIsr), hears which are offline, and
has others lead them.

Source: `kafka.server.ReplicaManager.handleLogDirFailure`,
`kafka.zk.KafkaZkClient.propagateLogDirEvent` (3.9).
"""

from broker.cluster.metadata_store import Create, MetadataStore
from broker.cluster.retried import Retried
from broker.cluster.tree_values import LOG_DIR_EVENT_PREFIX, encode_log_dir_event


class LogDirEvents:
    """Writes a notification for each failure, until it is written."""

    def __init__(self, store: MetadataStore, broker_id: int) -> None:
        self._store = store
        self._value = encode_log_dir_event(broker_id)
        self._telling = Retried("The controller does not know of a failed log directory yet")

    def directory_offline(self, path: str) -> None:
        """A log directory has failed: a listener of `storage.manager.directories`."""
        self._telling.ask()

    async def run(self) -> None:
        """Tell of failures until ended."""
        await self._telling.run(self._tell)

    async def _tell(self) -> None:
        await self._store.apply([Create(LOG_DIR_EVENT_PREFIX, self._value, sequential=True)])
