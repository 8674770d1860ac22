"""Topic configurations that change while logs are in service or being opened (S-CFG-5)."""

from collections.abc import Callable

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.log.log import Log
from storage.manager.log_table import LogTable
from storage.waits import PAUSE


class LogConfigs:
    """Applies changes to logs; a log that is being opened gets them when it is open."""

    def __init__(self, table: LogTable) -> None:
        self._table = table
        self._initializing: dict[TopicPartition, TopicConfig | None] = {}
        """Partitions being opened, each with a configuration that changed meanwhile, or None."""

    def initializing(self, topic_partition: TopicPartition) -> None:
        """The caller is about to read the topic's configuration and make its log."""
        self._initializing.setdefault(topic_partition, None)

    def finished_initializing(self, topic_partition: TopicPartition, log: Log | None) -> None:
        """Apply a configuration that changed since `initializing` (KAFKA-8813); `log` is None if
        none was made."""
        changed = self._initializing.pop(topic_partition, None)
        if changed is not None and log is not None:
            log.update_config(changed)

    def update_topic(self, topic: str, config: TopicConfig) -> None:
        """Use `config` for the topic's logs from now on."""
        for topic_partition in self._initializing:
            if topic_partition.topic == topic:
                self._initializing[topic_partition] = config
        for log in self._table.everything():
            if log.topic_partition.topic == topic:
                log.update_config(config)

    async def update_all(self, config_of: Callable[[str], TopicConfig]) -> None:
        """Give every log the configuration that `config_of` returns for its topic."""
        for topic_partition in self._initializing:
            self._initializing[topic_partition] = config_of(topic_partition.topic)
        for log in self._table.everything():
            log.update_config(config_of(log.topic_partition.topic))
            await PAUSE
