"""The facts of an answer about access: the things that it names, and the codes of refusals.

Two brokers must agree in this whatever else may differ. The facts that Apache Kafka 4.4.0 gave are
kept in tests/golden/access.json (`scripts/compare-answers --access --record`), so that the default
suite compares with them without Kafka.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from broker.security.authorized_operations import NOT_ASKED
from protocol.messages.metadata import MetadataResponse
from protocol.schema.values import Value

TOLD: Final = frozenset((3, 29, 30, 31, 53, 55, 65, 100))
"""Codes about access: those of the authorization, and those of unknown or skipped things."""
_NAMES: Final = ("name", "topic", "group_id", "transactional_id", "resource_name", "key")
_OPERATIONS: Final = (
    "authorized_operations",
    "topic_authorized_operations",
    "cluster_authorized_operations",
)
_TELLING: Final = re.compile("may-|not-|code |operations=")
_NUMBERED: Final = re.compile(r"(?<=may-|not-)\d+|-\d+(?=')")


def facts(answer: Any, topics: Mapping[bytes, str]) -> list[str]:
    """Return the facts of an answer, in order; `topics` are names by id.

    Things have the same names in each: numbers that make a name one case's own are left out.
    """
    told = {_NUMBERED.sub("", fact) for fact in _facts(answer, topics, "")}
    if isinstance(answer, MetadataResponse):  # Kafka makes topics when it has answered
        told = {fact.removesuffix(" code 3") for fact in told}
    return sorted(told)


def _facts(value: Any, topics: Mapping[bytes, str], path: str) -> Iterator[str]:
    said = " ".join(_said(value, topics))
    if _TELLING.search(said):
        yield f"{path}: {said}"
    for field in value._defaults:
        inside = getattr(value, field)
        for one in inside if isinstance(inside, list) else (inside,):
            if isinstance(one, Value):
                yield from _facts(one, topics, f"{path}/{field}{_named(value, topics)}")


def _named(value: Any, topics: Mapping[bytes, str]) -> str:
    names = [getattr(value, name, None) for name in _NAMES]
    names.append(topics.get(getattr(value, "topic_id", b"")))
    return "".join(f"[{name}]" for name in names if name)


def _said(value: Any, topics: Mapping[bytes, str]) -> Iterator[str]:
    for name in _NAMES:
        if getattr(value, name, None):
            yield f"{name}={getattr(value, name)!r}"
    known = topics.get(getattr(value, "topic_id", b""))
    if known:
        yield f"id of {known!r}"
    for field in value._defaults:
        inside = getattr(value, field)
        if field.endswith("error_code") and inside in TOLD:
            yield f"code {inside}"
        if field in _OPERATIONS and inside != NOT_ASKED:
            yield f"{field}={inside}"
