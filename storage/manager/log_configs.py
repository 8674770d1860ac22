"""Topic configurations that change while logs are there, or are being opened (S-CFG-5)."""

from collections.abc import Callable, Iterator

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.log.log import Log
from storage.manager.log_table import LogTable


class LogConfigs:
    """Brings changes to the logs they concern; one that is being opened gets it afterwards."""

    def __init__(self, table: LogTable) -> None:
        self._table = table
        self._initializing: dict[TopicPartition, TopicConfig | None] = {}
        """Partitions being opened, and what they are to follow if that has changed meanwhile."""

    def initializing(self, topic_partition: TopicPartition) -> None:
        """The caller is about to read the topic's configuration and make its log."""
        self._initializing.setdefault(topic_partition, None)

    def finished_initializing(self, topic_partition: TopicPartition, log: Log | None) -> None:
        """The log is there (or not): a configuration that changed meanwhile wins (KAFKA-8813)."""
        changed = self._initializing.pop(topic_partition, None)
        if changed is not None and log is not None:
            log.update_config(changed)

    def update_topic(self, topic: str, config: TopicConfig) -> None:
        """The topic's logs follow these rules from now on."""
        for topic_partition in self._initializing:
            if topic_partition.topic == topic:
                self._initializing[topic_partition] = config
        for log in self._table.everything():
            if log.topic_partition.topic == topic:
                log.update_config(config)

    def update_all(self, config_of: Callable[[str], TopicConfig]) -> Iterator[None]:
        """All logs follow what `config_of` says of their topics, one per step."""
        for topic_partition in self._initializing:
            self._initializing[topic_partition] = config_of(topic_partition.topic)
        for log in self._table.everything():
            log.update_config(config_of(log.topic_partition.topic))
            yield
