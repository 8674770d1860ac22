"""Frames that are known to do what no frame may, until that is mended: they are not sent.

One line each, with what it does; a line goes when the fault does. The list is empty when all is
well, and `scripts/fuzz --all` sends these frames too.
"""

from collections.abc import Callable
from typing import Final

from protocol.api_keys import ApiKey
from tests.fuzz.frames import Frame

_MANY: Final = 100_000


def _many_partitions(frame: Frame) -> bool:
    if frame.key is ApiKey.CREATE_TOPICS and frame.request is not None:
        return any(topic.num_partitions > _MANY for topic in frame.request.topics or ())
    if frame.key is ApiKey.CREATE_PARTITIONS and frame.request is not None:
        return any(topic.count > _MANY for topic in frame.request.topics or ())
    return False


def _many_configs(frame: Frame) -> bool:
    if frame.key is not ApiKey.DESCRIBE_CONFIGS or frame.request is None:
        return False
    return len(frame.request.resources or ()) > 100


def _many_topics(frame: Frame) -> bool:
    if frame.request is None:
        return False
    if frame.key in (ApiKey.CREATE_TOPICS, ApiKey.METADATA, ApiKey.CREATE_PARTITIONS):
        return len(frame.request.topics or ()) > 100
    return False


KNOWN: Final[tuple[tuple[str, Callable[[Frame], bool]], ...]] = (
    ("partitions by the million", _many_partitions),
    ("topics by the thousand", _many_topics),
    ("configs of a thousand resources", _many_configs),
)


def known_reason(frame: Frame) -> str | None:
    """Why the frame is not sent; None for all others."""
    for reason, matches in KNOWN:
        if matches(frame):
            return reason
    return None
