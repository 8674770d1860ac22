"""Asks a broker for the first, last and time-based offsets of partitions (ListOffsets)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tools.connection import TIMEOUT_S
from tools.errors import NoSuchTopic

Place = tuple[str, int]
"""Topic and partition."""


def place_name(place: Place) -> str:
    """`orders:3`."""
    return f"{place[0]}:{place[1]}"


class LogEnds:
    """Asks a broker for offsets. The result for a partition that does not exist is None."""

    def __init__(self, admin: Any, *, read_committed: bool = False) -> None:
        """With `read_committed` the end is the last stable offset, else the high watermark."""
        self._admin: Final = admin
        self._read_committed: Final = read_committed

    def firsts(self, places: Iterable[Place]) -> dict[Place, int | None]:
        """Return the log start offsets."""
        from confluent_kafka.admin import OffsetSpec

        return self._ask(dict.fromkeys(places, OffsetSpec.earliest()))

    def ends(self, places: Iterable[Place]) -> dict[Place, int | None]:
        """Return the ends: the last stable offsets or high watermarks."""
        from confluent_kafka.admin import OffsetSpec

        return self._ask(dict.fromkeys(places, OffsetSpec.latest()))

    def at_time(self, places: Iterable[Place], timestamp_ms: int) -> dict[Place, int | None]:
        """Return the offsets of the first records at or after that time; the end if none is."""
        from confluent_kafka.admin import OffsetSpec

        wanted = list(places)
        found = self._ask(dict.fromkeys(wanted, OffsetSpec.for_timestamp(timestamp_ms)))
        late = [place for place, offset in found.items() if offset is not None and offset < 0]
        return found | self.ends(late)

    def at(self, places: Iterable[Place], moment: int) -> dict[Place, int | None]:
        """Return offsets at a time, or at -1 (latest), -2 (earliest) or -3 (newest record).

        -1 where there is no such record.
        """
        from confluent_kafka.admin import OffsetSpec

        return self._ask(dict.fromkeys(places, OffsetSpec(moment)))

    def _ask(self, wanted: Mapping[Place, Any]) -> dict[Place, int | None]:
        from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition

        level = (
            IsolationLevel.READ_COMMITTED
            if self._read_committed
            else IsolationLevel.READ_UNCOMMITTED
        )
        if not wanted:
            return {}
        request = {TopicPartition(*place): spec for place, spec in wanted.items()}
        answers = self._admin.list_offsets(request, isolation_level=level)
        found: dict[Place, int | None] = {}
        gone = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)
        for partition, future in answers.items():
            place = (partition.topic, partition.partition)
            try:
                found[place] = int(future.result(TIMEOUT_S).offset)
            except KafkaException as error:
                if error.args[0].code() not in (*gone, KafkaError._UNKNOWN_TOPIC):
                    raise
                found[place] = None
        return found


def known_partitions(admin: Any) -> dict[str, list[int]]:
    """Return every topic and its partitions."""
    topics = admin.list_topics(timeout=TIMEOUT_S).topics
    return {name: sorted(topic.partitions) for name, topic in topics.items()}


def require_topic(known: Mapping[str, list[int]], topic: str) -> list[int]:
    """Return the partitions of `topic`. Raises NoSuchTopic."""
    if topic not in known:
        raise NoSuchTopic(topic)
    return known[topic]
