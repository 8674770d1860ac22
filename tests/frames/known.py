"""Requests that are known to do what no request may, until that is mended: they are not sent.

One line each, with what it does; a line goes when the fault does. The list is empty when all is
well, and `scripts/fuzz --all` sends these too.
"""

from collections.abc import Callable
from typing import Any, Final

from protocol.api_keys import ApiKey

_MANY: Final = 100_000


def _many_partitions(key: ApiKey, request: Any) -> bool:
    if key is ApiKey.CREATE_TOPICS:
        return any(topic.num_partitions > _MANY for topic in request.topics or ())
    if key is ApiKey.CREATE_PARTITIONS:
        return any(topic.count > _MANY for topic in request.topics or ())
    return False


def _many_configs(key: ApiKey, request: Any) -> bool:
    if key is not ApiKey.DESCRIBE_CONFIGS:
        return False
    return len(request.resources or ()) > 100


def _many_topics(key: ApiKey, request: Any) -> bool:
    if key in (ApiKey.CREATE_TOPICS, ApiKey.METADATA, ApiKey.CREATE_PARTITIONS):
        return len(request.topics or ()) > 100
    return False


KNOWN: Final[tuple[tuple[str, Callable[[ApiKey, Any], bool]], ...]] = (
    ("partitions by the million", _many_partitions),
    ("topics by the thousand", _many_topics),
    ("configs of a thousand resources", _many_configs),
)


def known_reason(key: ApiKey | None, request: Any) -> str | None:
    """Why the request is not sent; None for all others, and for what is no request."""
    if key is None or request is None:
        return None
    for reason, matches in KNOWN:
        if matches(key, request):
            return reason
    return None
