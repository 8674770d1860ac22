"""The broker's configuration while it runs: the current values, and how they are changed.

`current` is a frozen `BrokerConfig`, which each change replaces as a whole. Who reads it when it is
used needs nothing else; who has to act on a change is told by `follow`. Rules

1. A change is written to the metadata store before it takes effect, and holds after a restart.
2. The whole change is checked before anything is written: names, types, combinations of values, and
   sizes of thread pools.
3. Stored configs that this version cannot use are logged and left out: the broker starts.

The rules of layers and keys are in `config.dynamic`. After Kafka's `DynamicBrokerConfig`.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from broker.cluster.metadata_store import Create, MetadataStore, MetadataStoreError, Put
from broker.cluster.tree_values import broker_config_path, decode_config, encode_config
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.dynamic import ConfigLayers, check_changeable, check_thread_counts
from protocol.errors import ErrorCode, KafkaError
from storage.waits import Lock, Work

logger = logging.getLogger(__name__)

T = TypeVar("T")

Change = Callable[[Mapping[str, str]], Mapping[str, str | None]]
"""Makes the new configs of a resource from the old ones; may raise KafkaError."""


class DynamicBrokerConfig:
    """The layers of the broker's configuration, checked and merged again after each change."""

    def __init__(self, static: BrokerConfig, store: MetadataStore) -> None:
        """Use `load`."""
        self.current = static
        self.layers = ConfigLayers(file=static.originals)
        self._followers: list[Callable[[BrokerConfig, BrokerConfig], Work[None]]] = []
        self._broker_id = static.broker_id
        self._store = store
        self._changing = Lock()

    @classmethod
    async def load(cls, static: BrokerConfig, store: MetadataStore) -> "DynamicBrokerConfig":
        """Lay the configs in the store over `static`: `server.properties`, with the id resolved."""
        configs = cls(static, store)
        await configs._load()
        return configs

    async def _load(self) -> None:
        cluster = await self._stored(None)
        broker = await self._stored(self._broker_id)
        for layers in (
            ConfigLayers(file=self.layers.file, cluster=cluster, broker=broker),
            self.layers.with_cluster(cluster),
            self.layers.with_broker(broker),
        ):
            try:
                self.current = layers.config(self._broker_id)
            except ConfigError as error:
                logger.error("Configs that were set while the broker ran do not fit: %s", error)
            else:
                self.layers = layers
                return

    async def _stored(self, broker_id: int | None) -> dict[str, str]:
        path = broker_config_path(broker_id)
        node = await self._store.get(path)
        kept = {}
        for name, value in ({} if node is None else decode_config(path, node.value)).items():
            try:
                check_changeable({name: value})
            except ConfigError as error:
                logger.error("Left out of %s: %s", path, error)
            else:
                kept[name] = value
        return kept

    def follow(
        self, read: Callable[[BrokerConfig], T], tell: Callable[[T], Work[None] | None]
    ) -> None:
        """Have `tell` called with what `read` takes from the configuration when that has changed.

        A change calls those that follow in the order in which they were registered, and is answered
        after the last of them.
        """

        async def follower(before: BrokerConfig, now: BrokerConfig) -> None:
            if (value := read(now)) != read(before):
                told = tell(value)
                if told is not None:
                    await told

        self._followers.append(follower)

    async def alter(
        self, change: Change, *, for_cluster: bool, validate_only: bool = False
    ) -> None:
        """Change the configs that are set for the cluster or for this broker.

        Raises KafkaError: what `change` raises, INVALID_REQUEST with the reason (KAFKA-13609).
        """
        async with self._changing:
            old = self.layers.cluster if for_cluster else self.layers.broker
            wanted = {name: text for name, text in change(old).items() if text is not None}
            try:
                check_changeable(wanted, for_cluster=for_cluster)
                layers = (
                    self.layers.with_cluster(wanted)
                    if for_cluster
                    else self.layers.with_broker(wanted)
                )
                config = layers.config(self._broker_id)
                check_thread_counts(self.current, config)
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from error
            if validate_only:
                return
            await self._store_configs(None if for_cluster else self._broker_id, wanted)
            before, self.current, self.layers = self.current, config, layers
            for follower in self._followers:
                await follower(before, config)
        whose = "all brokers" if for_cluster else f"broker {self._broker_id}"
        logger.info("Configs of %s set while running: %s", whose, sorted(wanted) or "none")
        if config.unknown:
            logger.warning("The configurations %s are not known.", sorted(config.unknown))

    async def _store_configs(self, broker_id: int | None, configs: Mapping[str, str]) -> None:
        path, value = broker_config_path(broker_id), encode_config(configs)
        known = await self._store.get(path) is not None
        try:
            await self._store.apply([Put(path, value) if known else Create(path, value)])
        except MetadataStoreError as error:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"The metadata could not be written: {error}"
            ) from error
