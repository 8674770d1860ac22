"""Partitions by Kafka's patterns, as kafka-get-offsets.sh takes them.

orders        topics by a regular expression of the whole name, all partitions
orders:1      one partition         orders:0-3    from 0 to before 3
orders:5-     from 5 on             :-3           of every topic, to before 3
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from tools.errors import CommandError
from tools.log_ends import Place

_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]*)|([0-9]*)-([0-9]*)))?")

Rule = tuple["re.Pattern[str]", range | Collection[int] | None]
"""Topics, and partitions (None: all)."""


def parse_rules(text: str) -> list[Rule]:
    """Parse `orders:0-3,payments`. Raises CommandError."""
    rules: list[Rule] = []
    for word in text.split(","):
        found = _RULE.fullmatch(word)
        if found is None:
            raise CommandError(f"{word!r} is not of the form TOPIC, TOPIC:1, TOPIC:0-3 or TOPIC:5-")
        name, single, first, end = found.groups()
        numbers = None
        if single:
            numbers = range(int(single), int(single) + 1)
        elif first or end:
            numbers = range(int(first or 0), int(end) if end else 2**31)
        rules.append((_pattern(name or ".*"), numbers))
    return rules


def rule_of(topic: str | None, partitions: str | None) -> Rule:
    """Return the rule of `--topic` (alternatives with commas) and `--partitions`.

    Raises CommandError.
    """
    name = ".*" if topic is None else topic.replace(",", "|")
    if not partitions:
        return _pattern(name), None
    try:
        return _pattern(name), {int(number) for number in partitions.split(",")}
    except ValueError:
        raise CommandError(f"--partitions {partitions}: numbers, as 0 or 0,2") from None


def matching(rules: Sequence[Rule], known: Mapping[str, Iterable[int]]) -> list[Place]:
    """Return the partitions that any rule matches, sorted. Raises CommandError if none does."""
    places = {
        (topic, number)
        for topic, partitions in known.items()
        for pattern, numbers in rules
        if pattern.fullmatch(topic)
        for number in partitions
        if numbers is None or number in numbers
    }
    if not places:
        raise CommandError("no partition matches; `pykafkalog topics` lists what there is")
    return sorted(places)


def _pattern(text: str) -> "re.Pattern[str]":
    try:
        return re.compile(text)
    except re.error as error:
        raise CommandError(f"{text!r} is no regular expression: {error}") from None
