"""The table of every broker key: all of Kafka 2.5, those of Kafka 4.3, and a few of our own.

A key is one line in one of the tables joined here. `key` means that the broker reads it; `inert`
means that the broker knows it but it has no effect yet, as docs/configuration.md says.
"""

from config import (
    coordinator_keys,
    log_keys,
    metrics_keys,
    replication_keys,
    security_keys,
    server_keys,
)
from config.definition import ConfigTable

SECTIONS = (
    ("Server, listeners, connections", server_keys.KEYS),
    ("Logs and topics", log_keys.KEYS),
    ("Replication and controllers", replication_keys.KEYS),
    ("Groups, offsets, transactions", coordinator_keys.KEYS),
    ("Metrics, quotas, tiered storage", metrics_keys.KEYS),
    ("Security", security_keys.KEYS),
)
"""(heading, keys) of the sections of docs/configuration.md."""

BROKER_KEYS = ConfigTable(key for _, keys in SECTIONS for key in keys)
"""Every key that `server.properties` may hold and this broker knows."""
