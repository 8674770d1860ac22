"""Topics and partitions as named on a command line: `orders`, `orders:0,2`, as in Kafka's tools."""

from collections.abc import Mapping, Sequence

from tools.errors import CommandError
from tools.log_ends import Place, require_topic


def parse_chosen(word: str) -> tuple[str, tuple[int, ...] | None]:
    """Return a topic and its partitions, None for all of them. Raises CommandError."""
    topic, colon, numbers = word.partition(":")
    if not colon:
        return topic, None
    try:
        return topic, tuple(sorted({int(number) for number in numbers.split(",")}))
    except ValueError:
        raise CommandError(f"{word!r} is not of the form TOPIC or TOPIC:0,1,2") from None


def chosen_places(words: Sequence[str], known: Mapping[str, list[int]]) -> list[Place]:
    """Return every partition that is named. Raises CommandError for one that does not exist."""
    places: set[Place] = set()
    for word in words:
        topic, wanted = parse_chosen(word)
        partitions = require_topic(known, topic)
        for partition in partitions if wanted is None else wanted:
            if partition not in partitions:
                raise CommandError(
                    f"{topic} has no partition {partition}, its last one is {partitions[-1]}"
                )
            places.add((topic, partition))
    return sorted(places)
