"""Which topics and partitions are read: names, and patterns that begin with `^`."""

import re
from collections.abc import Mapping, Sequence

from tools.errors import CommandError
from tools.log_ends import Place, require_topic


def chosen_topics(words: Sequence[str], known: Mapping[str, list[int]]) -> list[str]:
    """Return names in order. Raises CommandError for an unknown name or a pattern without topics.

    A pattern matches from the beginning of a name. Topics that begin with `__` are internal; only a
    pattern that begins with `^__` matches them.
    """
    found: dict[str, None] = {}
    for word in words:
        if not word.startswith("^"):
            require_topic(known, word)
            found[word] = None
            continue
        try:
            pattern = re.compile(word)
        except re.error as error:
            raise CommandError(f"{word!r} is no regular expression: {error}") from None
        matches = [name for name in sorted(known) if pattern.match(name)]
        if not word.startswith("^__"):
            matches = [name for name in matches if not name.startswith("__")]
        if not matches:
            raise CommandError(f"no topic matches {word}; `pykafkalog topics` lists what there is")
        found |= dict.fromkeys(matches)
    return list(found)


def chosen_partitions(
    topics: Sequence[str], numbers: Sequence[int] | None, known: Mapping[str, list[int]]
) -> list[Place]:
    """Return all partitions of the topics, or those in `numbers`. Raises CommandError."""
    places = [(topic, number) for topic in topics for number in (numbers or known[topic])]
    for topic, number in places:
        if number not in known[topic]:
            raise CommandError(
                f"{topic} has no partition {number}, its last one is {known[topic][-1]}"
            )
    return places


def parse_numbers(text: str) -> list[int]:
    """Parse `0,2` or `0-3`. Raises CommandError."""
    numbers: set[int] = set()
    for word in text.split(","):
        first, dash, last = word.partition("-")
        bounds = (first, last) if dash else (first, first)
        if not all(bound.isdecimal() and int(bound) <= 10**6 for bound in bounds):
            raise CommandError(f"--partition {text}: numbers, as 0 or 0,2 or 0-3")
        span = range(int(bounds[0]), int(bounds[1]) + 1)
        if not span:
            raise CommandError(f"--partition {text}: {word} holds no partition")
        numbers |= set(span)
    return sorted(numbers)
