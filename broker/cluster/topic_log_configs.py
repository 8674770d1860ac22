"""The configuration of every topic's logs: its own configs over the broker's, kept up to date.

What a topic sets itself may have been stored by another version, or be made impossible by other
settings of the broker: then its logs follow the broker's defaults, and the log says so.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import trio

from broker.cluster.image import MetadataImage
from broker.cluster.internal_topics import internal_topic
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.topic_config import TopicConfig

log = logging.getLogger(__name__)

_LOGS_PER_TURN = 50
"""Logs that follow a change of the broker's config before the loop has its turn: about 1 ms."""


class LogConfigs(Protocol):
    """What is told `storage.log_manager.LogManager`."""

    def update_topic_config(self, topic: str, config: TopicConfig) -> None:
        """The logs of `topic` follow this from now on."""
        ...

    def update_all_configs(self, config_of: Callable[[str], TopicConfig]) -> Iterator[None]:
        """All logs follow what `config_of` says of their topics; yields after each."""
        ...


class TopicLogConfigs:
    """Makes a log's configuration from a topic's settings and the broker's, and tells who has to
    know."""

    def __init__(self, image: MetadataImage, broker: BrokerConfig, logs: LogConfigs) -> None:
        self._image = image
        self._logs = logs
        self.broker = broker
        """The configuration that holds: replaced by `follow_broker`."""

    def of_topic(self, name: str) -> TopicConfig:
        """For the logs of a topic; the broker's defaults for an unknown topic."""
        topic = self._image.topic(name)
        if topic is not None:
            own: Mapping[str, str | None] = topic.config
        else:
            wish = internal_topic(name, self.broker, 1)
            own = {} if wish is None else wish.config
        return self.resolve(name, {key: value for key, value in own.items() if value})

    def resolve(self, name: str, own: Mapping[str, str]) -> TopicConfig:
        """`own` over the broker's configuration."""
        try:
            return TopicConfig.from_broker(self.broker, own)
        except ConfigError as error:
            log.error("Topic %s follows the broker's defaults: %s", name, error)
            return TopicConfig.from_broker(self.broker, {})

    def topic_changed(self, name: str, own: Mapping[str, str]) -> None:
        """A topic has other configs of its own now."""
        self._logs.update_topic_config(name, self.resolve(name, own))

    async def follow_broker(self, broker: BrokerConfig) -> None:
        """The broker's own configuration has changed: so have the defaults of all topics."""
        self.broker = broker
        for turn, _ in enumerate(self._logs.update_all_configs(self.of_topic), 1):
            if turn % _LOGS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
