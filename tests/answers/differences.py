"""Two answers, field by field."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from protocol.schema.values import Value
from tests.answers.pair import Outcome

VOLATILE: Final = frozenset(
    (
        *("throttle_time_ms", "cluster_id", "host", "port", "rack", "log_dir"),
        *("total_bytes", "usable_bytes", "partition_size", "documentation"),
        *("transaction_start_time_ms", "last_timestamp", "finalized_features_epoch"),
    )
)
"""Fields that depend on the machine, the moment or the broker."""
SHAPE: Final = frozenset(
    ("topic_id", "member_id", "leader", "session_id", "producer_id", "current_txn_start_offset")
)
"""Fields whose value each broker chooses: compared by whether they have one."""
IDENTITY: Final = (
    *("name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "resource_type"),
    *("resource_name", "partition_index", "partition", "index", "node_id", "broker_id", "api_key"),
    *("user", "error_code", "producer_epoch", "principal", "host", "operation"),
    *("permission_type", "entity_type", "key"),
)
"""Elements of arrays are compared in the order of these: Kafka's is often that of a hash table."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs."""

    path: str
    """Names joined by dots, without indexes."""
    theirs: Any
    ours: Any


def differences(theirs: Outcome, ours: Outcome) -> list[Difference]:
    """Return all differences; none if the brokers agree."""
    if theirs.kind != "answer" or ours.kind != "answer":
        if theirs.kind == ours.kind:
            return []
        return [Difference("", _shown(theirs), _shown(ours))]
    found = list(_fields("", theirs.answer, ours.answer))
    if theirs.waited != ours.waited:
        found.append(Difference("waited", theirs.waited, ours.waited))
    return found


def _shown(outcome: Outcome) -> Any:
    return outcome.answer if outcome.kind == "answer" else outcome.kind


def _fields(path: str, theirs: Any, ours: Any) -> Iterator[Difference]:
    if isinstance(theirs, Value) and isinstance(ours, Value):
        for name in theirs._defaults:
            if name not in VOLATILE or (name == "host" and "principal" in theirs._defaults):
                inner = f"{path}.{name}" if path else name
                yield from _fields(inner, getattr(theirs, name), getattr(ours, name))
    elif isinstance(theirs, list | tuple) and isinstance(ours, list | tuple):
        yield from _elements(path, theirs, ours)
    elif not _same(path.rpartition(".")[2], theirs, ours):
        yield Difference(path, theirs, ours)


def _elements(path: str, theirs: Sequence[Any], ours: Sequence[Any]) -> Iterator[Difference]:
    if len(theirs) != len(ours):
        yield Difference(f"{path}.length", len(theirs), len(ours))
        return
    for one, other in zip(sorted(theirs, key=_identity), sorted(ours, key=_identity), strict=True):
        yield from _fields(path, one, other)


def _identity(element: Any) -> Any:
    if not isinstance(element, Value):
        return repr(element)
    names = [name for name in IDENTITY if name in element._defaults]
    if "entity" in element._defaults or not names:
        return sorted_text(getattr(element, "entity", element))
    return [repr(_coarse(name, getattr(element, name))) for name in names]


def sorted_text(value: Any) -> str:
    """Return the whole value as text, in which its arrays are sorted."""
    if isinstance(value, Value):
        return repr([sorted_text(getattr(value, name)) for name in value._defaults])
    if isinstance(value, list | tuple):
        return repr(sorted(map(sorted_text, value)))
    return repr(value)


_CONTROL: Final = 0x20
_MARKER_TIMES: Final = (slice(17, 21), slice(27, 43))
"""Checksum and timestamps of a batch."""


def _without_marker_times(records: bytes) -> bytes:
    """The same batches, those of transaction markers without the time of their writing."""
    data = bytearray(records)
    position = 0
    while position + 61 <= len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12])
        if data[position + 16] == 2 and data[position + 22] & _CONTROL:
            for part in _MARKER_TIMES:
                start, end = position + part.start, position + part.stop
                data[start:end] = bytes(end - start)
        position += max(size, 61)
    return bytes(data)


def _same(name: str, theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, memoryview | bytes) and isinstance(ours, memoryview | bytes):
        theirs, ours = bytes(theirs), bytes(ours)
        if name == "records":
            theirs, ours = _without_marker_times(theirs), _without_marker_times(ours)
    return bool(_coarse(name, theirs) == _coarse(name, ours))


def _coarse(name: str, value: Any) -> Any:
    """Return the part of a value that is compared."""
    if name not in SHAPE or value is None:
        return value
    if isinstance(value, bytes | memoryview):
        return any(bytes(value))
    return (
        value > 0
        if isinstance(value, int) and name == "session_id"
        else (value >= 0 if isinstance(value, int) else bool(value))
    )
