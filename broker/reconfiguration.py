"""What the parts of a running broker do when its configuration changes.

`DynamicBrokerConfig` has checked and stored the change and calls `follow` with the configuration
before and after. What is only read at the next start (`num.recovery.threads.per.data.dir`) needs
nothing here. After the `BrokerReconfigurable`s of Kafka's `DynamicBrokerConfig`.
"""

from dataclasses import replace

from broker.parts import Parts, connection_limits
from config.broker_config import BrokerConfig
from config.topic_keys import TOPIC_KEYS

_TOPIC_DEFAULTS = frozenset(name for key in TOPIC_KEYS for name in key.synonyms)


class Reconfiguration:
    """Brings changes to the parts."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def follow(self, before: BrokerConfig, now: BrokerConfig) -> None:
        """Called on the event loop, one change after the other."""
        parts = self._parts
        parts.log_manager.reconfigure(now)
        if any(before.values[name] != now.values[name] for name in _TOPIC_DEFAULTS):
            await parts.controller.follow_broker_config(before, now)
        parts.channel.pool.resize(now.num_io_threads)
        parts.background.resize(now.background_threads)
        parts.log_cleaner.reconfigure(now)
        parts.socket_server.limits.limits = connection_limits(now)
        transactions = parts.transaction_coordinator
        transactions.settings = replace(
            transactions.settings, verify_partitions=now.transaction_partition_verification_enable
        )
