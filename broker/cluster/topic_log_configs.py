"""The configuration of every topic's logs: its own configs over the broker's, kept up to date.

A topic's own configs may have been stored by another version, or contradict the broker's
configuration: then its logs use the broker's defaults, and an error is logged.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.image import MetadataImage
from broker.cluster.internal_topics import internal_topic
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.topic_config import TopicConfig
from config.topic_keys import TOPIC_KEYS

if TYPE_CHECKING:
    from storage.log_manager import LogManager

log = logging.getLogger(__name__)

_DEFAULTS = sorted({name for key in TOPIC_KEYS for name in key.synonyms})
"""The keys of the broker that hold for topics which do not set their own."""


def topic_defaults(broker: BrokerConfig) -> list[Any]:
    """The values that hold for topics which do not set their own."""
    return [broker.values[name] for name in _DEFAULTS]


class TopicLogConfigs:
    """Merges a topic's own configs with the broker's, and updates the logs when either changes."""

    def __init__(
        self,
        image: MetadataImage,
        configs: DynamicBrokerConfig,
        logs: "LogManager",
        *,
        known: Callable[[str], Mapping[str, str]] | None = None,
    ) -> None:
        """`known`: what topics set themselves, where the image does not know all of them yet."""
        self._image = image
        self._known = known
        self._logs = logs
        self._configs = configs

    @property
    def broker(self) -> BrokerConfig:
        """The broker's current configuration."""
        return self._configs.current

    def of_topic(self, name: str) -> TopicConfig:
        """Return the configuration of a topic's logs; the defaults for an unknown topic."""
        topic = self._image.topic(name)
        if topic is not None:
            own: Mapping[str, str | None] = topic.config
        elif self._known is not None:
            own = self._known(name)
        else:
            wish = internal_topic(name, self.broker, 1)
            own = {} if wish is None else wish.config
        return self.resolve(name, {key: value for key, value in own.items() if value})

    def resolve(self, name: str, own: Mapping[str, str]) -> TopicConfig:
        """Merge `own` over the broker's configuration; the defaults alone if they do not fit."""
        try:
            return TopicConfig.from_broker(self.broker, own)
        except ConfigError as error:
            log.error("Topic %s follows the broker's defaults: %s", name, error)
            return TopicConfig.from_broker(self.broker, {})

    def topic_changed(self, name: str, own: Mapping[str, str]) -> None:
        """A topic's own configs have changed: update its logs."""
        self._logs.update_topic_config(name, self.resolve(name, own))

    async def defaults_changed(self) -> None:
        """The broker's configuration has changed: update the logs of all topics."""
        await self._logs.update_all_configs(self.of_topic)
