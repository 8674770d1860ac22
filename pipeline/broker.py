"""What the broker has, asked once before Spark is started: a mistake is told in a second."""

import os
import re
import socket
from typing import Any, Final

from config.environment import is_it_right
from pipeline.errors import PipelineError

TIMEOUT_S: Final = 10.0
CONNECT_S: Final = 5.0


def partitions_of_topics(bootstrap: str, client: dict[str, Any] | None = None) -> dict[str, int]:
    """Topic to its number of partitions. Raises PipelineError when no broker answers."""
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
    """Raises PipelineError when nothing listens at any of the addresses, with the reasons."""
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
    """The topics meant by names or by a pattern. Raises PipelineError when one is not there."""
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
