"""Asks the broker for its topics before Spark is started, so that a mistake shows in a second."""

import os
import re
import socket
from typing import Any, Final

from config.environment import is_it_right
from pipeline.errors import PipelineError

TIMEOUT_S: Final = 10.0
CONNECT_S: Final = 5.0


def partitions_of_topics(bootstrap: str, client: dict[str, Any] | None = None) -> dict[str, int]:
    """Return the number of partitions by topic. Raises PipelineError if no broker answers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    require_listener(bootstrap)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2, **(client or {})})
    try:
        topics = admin.list_topics(timeout=TIMEOUT_S).topics
    except KafkaException as error:
        raise PipelineError(
            f"no broker answers at {bootstrap} ({error.args[0].str()})."
            f" {is_it_right(os.environ, bootstrap)}"
        ) from None
    return {name: len(topic.partitions) for name, topic in topics.items()}


def require_listener(bootstrap: str) -> None:
    """Raise PipelineError with the reasons if nothing listens at any of the addresses."""
    reasons = []
    for server in bootstrap.split(","):
        host, colon, port = server.strip().rpartition("://")[2].rpartition(":")
        if not colon or not port.isdigit():
            raise PipelineError(f"{server!r} is not of the form HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        except OSError as error:
            reasons.append(f"cannot connect to {host}:{port}: {error.strerror or error}")
        else:
            return
    raise PipelineError(f"{'; '.join(reasons)}. {is_it_right(os.environ, bootstrap)}")


def matching(topics: dict[str, int], names: list[str], pattern: str | None) -> list[str]:
    """Return the topics named or matching a pattern. Raises PipelineError if one does not exist."""
    missing = [name for name in names if name not in topics]
    if missing:
        raise PipelineError(f"there is no topic {', '.join(missing)}")
    if pattern is None:
        return names
    try:
        found = [name for name in topics if re.fullmatch(pattern, name)]
    except re.error as error:
        raise PipelineError(f"the pattern {pattern!r} is none: {error}") from None
    if not found:
        raise PipelineError(f"no topic matches {pattern!r}")
    return sorted(found)
