"""Follows the configs of brokers that others have written to the tree (/config/brokers).

The configs for all brokers may be set through any of them. A stand-alone broker writes them itself.

Source: `kafka.server.BrokerConfigHandler` (3.9).
"""

from collections.abc import Collection

from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.metadata_store import MetadataStore, NodeEvent
from broker.cluster.retried import Retried
from broker.cluster.tree_values import BROKER_CONFIGS, broker_config_path


class BrokerSettings:
    """Has the configuration read again when its nodes have changed."""

    def __init__(self, store: MetadataStore, configs: DynamicBrokerConfig, broker_id: int) -> None:
        self._configs = configs
        self._paths = frozenset((broker_config_path(None), broker_config_path(broker_id)))
        self._following = Retried("Configs of this broker cannot be read")
        configs.is_shared = True
        store.watch(BROKER_CONFIGS, self._on_events)

    def _on_events(self, events: Collection[NodeEvent]) -> None:
        if any(event.path in self._paths for event in events):
            self._following.ask()

    async def run(self) -> None:
        """Follow the changes until ended."""
        await self._following.run(self._configs.reread)
