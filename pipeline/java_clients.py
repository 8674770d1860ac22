"""Kafka's Java clients in the session's JVM, with the settings that Spark's kafka source takes.

So a user who reads topics through Spark needs no second set of settings (logins, stores of keys).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

_BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


@contextmanager
def java_admin(session: Any, settings: Mapping[str, str]) -> Iterator[Any]:
    """Open an `Admin` for the block."""
    client = session._jvm.org.apache.kafka.clients.admin.Admin.create(dict(settings))
    try:
        yield client
    finally:
        client.close()


@contextmanager
def java_consumer(session: Any, settings: Mapping[str, str]) -> Iterator[Any]:
    """Open a `KafkaConsumer` of bytes for the block, without a group."""
    wanted = {**settings, "key.deserializer": _BYTES, "value.deserializer": _BYTES}
    client = session._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(wanted)
    try:
        yield client
    finally:
        client.close()
