"""The broker's configuration while it runs: the current values, and how they are changed.

`current` is a frozen `BrokerConfig`, which each change replaces as a whole. Code that reads it at
each use needs nothing else; code that has to act on a change registers with `follow`. Rules

1. A change is written to the metadata store before it takes effect, and holds after a restart.
2. The whole change is checked before anything is written: names, types, combinations of values, and
   sizes of thread pools.
3. Key and trust stores that a change names are read and tried before it is accepted; the files of
   the others are looked at again with every change of this broker's configs, as Kafka does.
4. Stored configs that this version cannot use are logged and left out: the broker starts.
5. In a cluster passwords are encrypted in the store (`password_encoder`).
6. Hosts that have limits of connections are looked up when these are set (`limited_hosts`).

The rules of layers and keys are in `config.dynamic`. After Kafka's `DynamicBrokerConfig`.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from broker.cluster.limited_hosts import Resolve, as_written, located
from broker.cluster.metadata_store import Create, MetadataStore, MetadataStoreError, Put
from broker.cluster.password_encoder import PasswordEncoder
from broker.cluster.refusals import store_errors_told
from broker.cluster.tree_values import broker_config_path, decode_config, encode_config
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.dynamic import (
    DYNAMIC_ONLY,
    ConfigLayers,
    check_changeable,
    check_thread_counts,
    is_password,
    stores_of,
)
from protocol.errors import ErrorCode, KafkaError
from storage.waits import Lock, Work, call

logger = logging.getLogger(__name__)

T = TypeVar("T")

Change = Callable[[Mapping[str, str]], Mapping[str, str | None]]
"""Makes the new configs of a resource from the old ones; may raise KafkaError."""


class Stores(Protocol):
    """The key and trust stores of listeners: `broker.network.tls_listeners.TlsListeners`."""

    async def prepare(self, config: BrokerConfig) -> Callable[[], None]:
        """Read what a configuration names; return what puts it in force. Raises ConfigError."""
        ...

    async def reload(self, config: BrokerConfig) -> None:
        """Put in force what has changed in the files, if it can be used."""
        ...


class DynamicBrokerConfig:
    """The layers of the broker's configuration, checked and merged again after each change."""

    def __init__(
        self,
        static: BrokerConfig,
        store: MetadataStore,
        encoder: PasswordEncoder | None,
        resolve: Resolve,
    ) -> None:
        """Use `load`."""
        self.current = static
        self.layers = ConfigLayers(file=static.originals)
        self._followers: list[Callable[[BrokerConfig, BrokerConfig], Work[None]]] = []
        self._broker_id = static.broker_id
        self._store = store
        self._encoder = encoder
        self._resolve = resolve
        self._changing = Lock()
        self._stores: Stores | None = None
        self.is_shared = False
        """Whether other brokers write the configs for all brokers, too: they are read again before
        a change."""

    @classmethod
    async def load(
        cls,
        static: BrokerConfig,
        store: MetadataStore,
        encoder: PasswordEncoder | None = None,
        resolve: Resolve = as_written,
    ) -> "DynamicBrokerConfig":
        """Lay the configs in the store over `static`: `server.properties`, with the id resolved.

        Passwords in the store are as `encoder` makes them; None: in plain text. Raises ConfigError
        for a host of `static` that has no address.
        """
        configs = cls(static, store, encoder, resolve)
        configs.current = await located(static, resolve)
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
                self.current = await self._config(layers)
            except ConfigError as error:
                logger.error("Configs that were set while the broker ran do not fit: %s", error)
            else:
                self.layers = layers
                return

    async def _config(self, layers: ConfigLayers) -> BrokerConfig:
        """The configuration of the layers. Raises ConfigError."""
        config = layers.config(self._broker_id)
        hosts = config.max_connections_per_ip_overrides
        if hosts == self.current.max_connections_per_ip_overrides:
            return config.with_ip_connection_limits(self.current.ip_connection_limits)
        return await located(config, self._resolve)

    async def reread(self) -> None:
        """Put in force what others have written to the tree. Raises MetadataStoreError."""
        async with self._changing:
            await self._reread()

    async def _reread(self) -> None:
        before = self.current
        await self._load()
        if self.current.values == before.values:
            return
        if self._stores is not None:
            await self._stores.reload(self.current)
        for follower in self._followers:
            await follower(before, self.current)
        logger.info("Configs were set while running, through another broker")

    async def _stored(self, broker_id: int | None) -> dict[str, str]:
        path = broker_config_path(broker_id)
        node = await self._store.get(path)
        kept = {}
        for name, value in ({} if node is None else decode_config(path, node.value)).items():
            try:
                value = await self._decoded(name, value)
                check_changeable({name: value})
            except ConfigError as error:
                logger.error("Left out of %s: %s", path, error)
            else:
                kept[name] = value
        return kept

    async def _decoded(self, name: str, stored: str) -> str:
        """A value of the store. Raises ConfigError for a password that cannot be decrypted."""
        if self._encoder is None or not is_password(name):
            return stored
        try:
            return await call(self._encoder.decode, stored)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.message}") from None

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

    def check_stores(self, stores: Stores) -> None:
        """Have key and trust stores checked before a change of them is accepted (S-TLS-5)."""
        self._stores = stores

    async def _prepared_stores(
        self, old: Mapping[str, str], wanted: Mapping[str, str], config: BrokerConfig
    ) -> Callable[[], None] | None:
        """Check what this broker's new configs say of stores; return what puts it in force.

        None if they say nothing new. Altered to what they are they are read again. Raises
        ConfigError.
        """
        if self._stores is None or (wanted != old and stores_of(wanted) == stores_of(old)):
            return None
        return await self._stores.prepare(config)

    async def alter(
        self, change: Change, *, for_cluster: bool, validate_only: bool = False
    ) -> None:
        """Change the configs that are set for the cluster or for this broker.

        Raises KafkaError: what `change` raises, INVALID_REQUEST with the reason (KAFKA-13609).
        """
        async with self._changing:
            if self.is_shared:
                with store_errors_told():
                    await self._reread()
            old = self.layers.cluster if for_cluster else self.layers.broker
            wanted = {name: text for name, text in change(old).items() if text is not None}
            try:
                check_changeable(wanted, for_cluster=for_cluster)
                layers = (
                    self.layers.with_cluster(wanted)
                    if for_cluster
                    else self.layers.with_broker(wanted)
                )
                config = await self._config(layers)
                check_thread_counts(self.current, config)
                put_in_force = (
                    None if for_cluster else await self._prepared_stores(old, wanted, config)
                )
                stored = await self._encoded(wanted)
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from error
            if validate_only:
                return
            await self._store_configs(None if for_cluster else self._broker_id, stored)
            before, self.current, self.layers = self.current, config, layers
            if put_in_force is not None:
                put_in_force()
            elif self._stores is not None and not for_cluster:
                await self._stores.reload(config)
            for follower in self._followers:
                await follower(before, config)
        whose = "all brokers" if for_cluster else f"broker {self._broker_id}"
        logger.info("Configs of %s set while running: %s", whose, sorted(wanted) or "none")
        unknown = sorted(set(config.unknown) - DYNAMIC_ONLY.keys())
        if unknown:
            logger.warning("The configurations %s are not known.", unknown)

    async def _encoded(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Configs as they are stored. Raises ConfigError if a password cannot be encrypted."""
        stored = dict(configs)
        if self._encoder is not None:
            for name in filter(is_password, configs):
                stored[name] = await call(self._encoder.encode, configs[name])
        return stored

    async def _store_configs(self, broker_id: int | None, configs: Mapping[str, str]) -> None:
        path, value = broker_config_path(broker_id), encode_config(configs)
        known = await self._store.get(path) is not None
        try:
            await self._store.apply([Put(path, value) if known else Create(path, value)])
        except MetadataStoreError as error:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"The metadata could not be written: {error}"
            ) from error
