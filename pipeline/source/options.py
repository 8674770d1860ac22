"""The options of `format("pykafkalog")`: those of Spark's kafka source, read the same way.

In addition, `log.dirs` names the log directories, and options that only a client needs (`kafka.…`)
are ignored, so that a job can change from one source to the other by the format's name. Any other
unknown option is an error: with a misspelt one, a job would read something else.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from protocol.types import TopicPartition
from storage.os_filesystem import OsFileSystem
from storage.reader.scan import (
    EARLIEST,
    LATEST,
    IsolationLevel,
    Kind,
    Position,
    Positions,
    ScanRequest,
)
from storage.reader.scan.selecting import select

KNOWN: Final = (
    "log.dirs",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "isolation.level",
    "includeHeaders",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "beyondHighWatermark",
    "splitBytes",
)
_NAMES: Final = frozenset(name.lower() for name in KNOWN)
_SPECIAL: Final = {-1: LATEST, -2: EARLIEST}
_SPLIT_BYTES: Final = 128 * 1024 * 1024


class BadOption(ValueError):
    """An option is missing, unknown or makes no sense; the message names it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of the range, from the options."""

    default: Position
    partitions: Mapping[TopicPartition, Position] = field(default_factory=dict)
    option: str = ""
    """The option that named partitions one by one."""

    def positions(self, selected: Sequence[TopicPartition]) -> Positions:
        """Return positions of the selected partitions.

        Raises BadOption if the option names some partitions, but not exactly these.
        """
        if self.partitions and set(self.partitions) != set(selected):
            missing = sorted(str(one) for one in set(selected) - set(self.partitions))
            unknown = sorted(str(one) for one in set(self.partitions) - set(selected))
            raise BadOption(
                f"{self.option} must name each partition that is read"
                + (f"; it lacks {', '.join(missing)}" if missing else "")
                + (f"; it names {', '.join(unknown)}, which is not read" if unknown else "")
            )
        return Positions(self.default, dict(self.partitions))


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The checked options."""

    request: ScanRequest
    """The request, without start and end."""
    start: Bound
    end: Bound
    start_is_strict: bool
    """Whether it is an error if no record is at or after a starting timestamp."""
    include_headers: bool
    fail_on_data_loss: bool
    max_offsets_per_trigger: int | None

    def selected(self) -> list[TopicPartition]:
        """Return the selected partitions that exist now. Raises the scan errors."""
        return [where for where, _ in select(self.request, OsFileSystem())]


def parse_options(options: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
    """Check and parse the options of a query. Raises BadOption."""
    given = {name.lower(): value for name, value in options.items()}
    for name in options:
        if name.lower() not in _NAMES and not name.lower().startswith("kafka.") and name != "path":
            raise BadOption(f"unknown option {name}; there are {', '.join(KNOWN)}")

    def get(name: str) -> str | None:
        return given.get(name.lower())

    directories = tuple(_words(get("log.dirs") or ""))
    if not directories:
        raise BadOption("the option log.dirs is missing: the broker's log directories, or a copy")
    level = get("isolation.level") or get("kafka.isolation.level") or "read_uncommitted"
    try:
        isolation = IsolationLevel(level)
    except ValueError:
        raise BadOption(f"isolation.level: {level} is no isolation level") from None
    ends = [name for name in KNOWN if name.startswith("ending") and get(name) is not None]
    if streaming and ends:
        raise BadOption(f"{ends[0]} has no meaning in a streaming query")
    most = get("maxOffsetsPerTrigger")
    return SourceOptions(
        request=ScanRequest(
            directories=directories,
            **_topics(get("subscribe"), get("subscribePattern"), get("assign")),
            isolation=isolation,
            beyond_high_watermark=_flag("beyondHighWatermark", get("beyondHighWatermark"), False),
            split_bytes=_number("splitBytes", get("splitBytes"), _SPLIT_BYTES),
        ),
        start=_bound(get, "starting", LATEST if streaming else EARLIEST),
        end=_bound(get, "ending", LATEST),
        start_is_strict=(get("startingOffsetsByTimestampStrategy") or "error") != "latest",
        include_headers=_flag("includeHeaders", get("includeHeaders"), False),
        fail_on_data_loss=_flag("failOnDataLoss", get("failOnDataLoss"), True),
        max_offsets_per_trigger=None if most is None else _number("maxOffsetsPerTrigger", most, 0),
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _topics(subscribe: str | None, pattern: str | None, assign: str | None) -> dict[str, Any]:
    ways = [one for one in (subscribe, pattern, assign) if one is not None]
    if len(ways) != 1:
        raise BadOption("one of subscribe, subscribePattern and assign says which topics are read")
    if subscribe is not None:
        names = _words(subscribe)
        if not names:
            raise BadOption("subscribe names no topic")
        return {"topics": tuple(names)}
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadOption(f"subscribePattern: {error}") from None
        return {"pattern": pattern}
    table = _json("assign", assign or "")
    try:
        return {"assign": tuple(TopicPartition(t, int(p)) for t, ps in table.items() for p in ps)}
    except (TypeError, ValueError):
        raise BadOption(f'assign: {assign} is not like {{"orders":[0,1]}}') from None


def _bound(get: Any, prefix: str, default: Position) -> Bound:
    """Parse one end by the kafka source's three options, in its order: one time, times, offsets."""
    name = f"{prefix}Timestamp"
    if (time := get(name)) is not None:
        return Bound(Position.timestamp(_number(name, time, 0)))
    name = f"{prefix}OffsetsByTimestamp"
    if (text := get(name)) is not None:
        times = {where: Position.timestamp(ms) for where, ms in _table(name, text).items()}
        return Bound(default, times, name)
    name = f"{prefix}Offsets"
    text = get(name)
    if text is None:
        return Bound(default)
    word = text.strip().lower()
    if word == "latest":
        return Bound(LATEST)
    if word == "earliest" and prefix == "starting":
        return Bound(EARLIEST)
    offsets = {
        where: _SPECIAL.get(offset) or Position.offset(offset)
        for where, offset in _table(name, text).items()
    }
    for where, position in offsets.items():
        if position.value < 0 or (position == EARLIEST and prefix == "ending"):
            raise BadOption(f"{name}: {where} has no such offset")
    return Bound(default, offsets, name)


def _table(name: str, text: str) -> dict[TopicPartition, int]:
    table = _json(name, text)
    try:
        return {
            TopicPartition(topic, int(partition)): int(value)
            for topic, partitions in table.items()
            for partition, value in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise BadOption(f'{name}: {text} is not like {{"orders":{{"0":23,"1":-2}}}}') from None


def _json(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        raise BadOption(f"{name}: {text} is no JSON") from None
    if not isinstance(value, dict):
        raise BadOption(f"{name}: {text} is no JSON object")
    return value


def _number(name: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise BadOption(f"{name}: {text} is no number") from None


def _flag(name: str, text: str | None, default: bool) -> bool:
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise BadOption(f"{name}: {text} is neither true nor false")
    return text.lower() == "true"


def is_timed(position: Position) -> bool:
    """Whether the position is a time."""
    return position.kind is Kind.TIMESTAMP
