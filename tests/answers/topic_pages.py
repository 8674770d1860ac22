"""A walk through pages of topics: drawn names, limits and cursors, or the last page's cursor."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from protocol.api_keys import ApiKey
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicPartitionsCursor,
    TopicPartitionsTopic,
)
from tests.answers.walks import State, Step


@dataclass(slots=True)
class _Drawn:
    names: list[str | None]
    """None: the topic of the walk."""
    limit: int
    cursor: tuple[str | None, int] | None
    goes_on: bool

    def request(self, state: State) -> Any:
        topic = state.names.topic
        cursor = None
        if self.goes_on and state.page is not None:
            cursor = TopicPartitionsCursor(topic_name=state.page[0], partition_index=state.page[1])
        elif self.cursor is not None:
            name, index = self.cursor
            cursor = TopicPartitionsCursor(topic_name=name or topic, partition_index=index)
        return DescribeTopicPartitionsRequest(
            topics=[TopicPartitionsTopic(name=name or topic) for name in self.names],
            response_partition_limit=self.limit,
            cursor=cursor,
        )


def pages_walk(rng: Random) -> Iterator[Step]:
    """Pages of named topics, and of all from the walk's own one on."""
    known = (None, None, "walk-pages-", "walk-pages-0", "walk-pages-1", "a b", "zz", "aa")
    while True:
        names = [rng.choice(known) for _ in range(rng.choice((1, 2, 3, 5)))]
        limit = rng.choice((1, 2, 3, 4, 100, 0, -1))
        cursor = None
        if rng.random() < 0.5:
            cursor = rng.choice((*names, rng.choice(known))), rng.choice((0, 1, 1, 2, 7, -1))
        goes_on = rng.random() < 0.4
        if not goes_on and rng.random() < 0.2:
            names, limit, cursor = [], rng.choice((1, 2)), (None, rng.choice((0, 0, 1)))
        drawn = _Drawn(names, limit, cursor, goes_on)
        text = f"pages of {names} limit={limit} cursor={'the last' if goes_on else cursor}"
        yield Step(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, text, drawn.request, _learn)


def _learn(state: State, answer: Any) -> None:
    cursor = answer.next_cursor
    state.page = None if cursor is None else (cursor.topic_name, cursor.partition_index)
