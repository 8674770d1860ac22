"""The topics' own configs: read from /config/topics, followed while the broker runs.

Any broker may write a topic's configs. All brokers read them and apply them to image and logs.

While ZooKeeper cannot be reached a topic that is not known yet has the broker's defaults, until its
configs can be read.

Source: `kafka.server.ZkConfigManager`, `TopicConfigHandler` (3.9).
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

from broker.cluster.changed_nodes import ChangedNodes
from broker.cluster.metadata_store import MetadataStore, MetadataStoreError, StoredNode
from broker.cluster.tree_values import TOPIC_CONFIGS, decode_config, topic_config_path
from storage.waits import PAUSE

log = logging.getLogger(__name__)

_DEPTH: Final = topic_config_path("t").count("/")
_NONE: Final[Mapping[str, str]] = {}


class TopicSettings:
    """The own configs of topics, by name."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._own: dict[str, Mapping[str, str]] = {}
        self._changed = ChangedNodes(
            store,
            [TOPIC_CONFIGS],
            what="Configs of topics",
            node_of=lambda path: path if path.count("/") == _DEPTH else None,
            apply=self._apply,
        )
        self.run = self._changed.run
        self.changed: Callable[[str, Mapping[str, str]], None] = lambda name, own: None
        """Called when the known configs of a topic change."""

    @property
    def are_any(self) -> bool:
        """Whether any topics are known, those without own configs too."""
        return bool(self._own)

    def own(self, name: str) -> Mapping[str, str]:
        """The own configs of a topic."""
        return self._own.get(name, _NONE)

    async def load(self) -> None:
        """Read the configs of all topics. Raises MetadataStoreError."""
        await self._read(await self._store.children(TOPIC_CONFIGS))

    async def learn(self, names: Collection[str]) -> None:
        """Read the configs of topics that are new here."""
        names = list(names)
        try:
            await self._read(names)
        except MetadataStoreError as error:
            log.warning("The configs of topics are not known yet: %s", error)
            self._changed.note(map(topic_config_path, names))

    async def _read(self, names: list[str]) -> None:
        if not names:
            return
        paths = list(map(topic_config_path, names))
        for path, node in zip(paths, await self._store.get_many(paths), strict=True):
            await self._apply(path, node)
            await PAUSE

    async def _apply(self, path: str, node: StoredNode | None) -> None:
        name = path.rpartition("/")[2]
        self.note(name, _decoded(name, node))

    def note(self, name: str, own: Mapping[str, str]) -> None:
        """A topic sets `own` now."""
        before = self._own.get(name)
        self._own[name] = own
        if before is not None and before != own:
            self.changed(name, own)

    def forget(self, name: str) -> None:
        """The topic is gone."""
        self._own.pop(name, None)


def _decoded(name: str, node: StoredNode | None) -> Mapping[str, str]:
    """The configs in a topic's node; none if it cannot be read."""
    if node is None:
        return _NONE
    try:
        return decode_config(topic_config_path(name), node.value)
    except MetadataStoreError as error:
        log.error("Topic %s follows the broker's defaults: %s", name, error)
        return _NONE
