"""The table of every broker key: all of Kafka 2.5, those of Kafka 4.3, and a few of our own.

A key is one line in one of the tables joined here. `key` means that the broker reads it; `inert`
that it is understood but changes nothing yet, which docs/configuration.md tells the operator.
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
"""For docs/configuration.md: headings and their keys."""

BROKER_KEYS = ConfigTable(key for _, keys in SECTIONS for key in keys)
"""Every key that `server.properties` may hold and this broker knows."""
