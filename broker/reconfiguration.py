"""What the components of a running broker do when its configuration changes.

`DynamicBrokerConfig` checks and stores a change, then calls `follow` with the configuration before
and after it. A setting that only a start reads (`num.recovery.threads.per.data.dir`) needs nothing
here. After the `BrokerReconfigurable`s of Kafka's `DynamicBrokerConfig`.
"""

from dataclasses import replace

from broker.components import Components, connection_limits
from config.broker_config import BrokerConfig
from config.topic_keys import TOPIC_KEYS

_TOPIC_DEFAULTS = frozenset(name for key in TOPIC_KEYS for name in key.synonyms)


class Reconfiguration:
    """Passes changed settings on to the components."""

    def __init__(self, components: Components) -> None:
        self._components = components

    async def follow(self, before: BrokerConfig, now: BrokerConfig) -> None:
        """Apply the change from `before` to `now`. Called on the event loop, one at a time."""
        components = self._components
        components.log_manager.reconfigure(now)
        if any(before.values[name] != now.values[name] for name in _TOPIC_DEFAULTS):
            await components.controller.follow_broker_config(before, now)
        components.channel.pool.resize(now.num_io_threads)
        components.background.resize(now.background_threads)
        components.log_cleaner.reconfigure(now)
        components.socket_server.limits.limits = connection_limits(now)
        transactions = components.transaction_coordinator
        transactions.settings = replace(
            transactions.settings, verify_partitions=now.transaction_partition_verification_enable
        )
