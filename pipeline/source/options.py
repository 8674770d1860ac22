"""The options of `format("pykafkalog")`: those of Spark's kafka source, read the same way.

In addition, `log.dirs` names the log directories, and options that only a client needs (`kafka.…`,
`_OF_CLIENTS`) are ignored, so that a job can change from one source to the other by the format's
name. Options that the kafka source refuses are refused, and so is any other unknown option: with a
misspelt one, a job would read something else.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
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
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "pushDownPredicate",
    "beyondHighWatermark",
    "splitBytes",
)
_OF_CLIENTS: Final = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_REFUSED: Final = {
    "kafka.auto.offset.reset": "startingOffsets says where a query begins",
    "kafka.key.deserializer": "keys are bytes",
    "kafka.value.deserializer": "values are bytes",
    "kafka.enable.auto.commit": "a query's offsets are in its checkpoint",
    "kafka.interceptor.classes": "no consumer reads these files",
}
"""Options that the kafka source refuses, and why there is no need of them."""
_ISOLATION: Final = "kafka.isolation.level"
_NAMES: Final = {name.lower(): name for name in (*KNOWN, *_OF_CLIENTS, "path")}
_INTERNAL: Final = "__consumer_offsets|__transaction_state|__share_group_state"
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_MAX_TRIGGER_DELAY: Final = "15m"
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
    min_offsets_per_trigger: int | None
    max_trigger_delay_s: float
    min_partitions: int
    """The least number of tasks, if there are as many offsets; 0: no least number."""
    push_down_predicate: bool
    """Whether a batch reads only what the conditions of its query leave."""

    def selected(self) -> list[TopicPartition]:
        """Return the selected partitions that exist now. Raises the scan errors."""
        return [where for where, _ in select(self.request, OsFileSystem())]


def parse_options(options: Mapping[str, str], *, streaming: bool | None = False) -> SourceOptions:
    """Check and parse the options of a query; of either kind if `streaming` is None.

    Raises BadOption.
    """
    for name in options:
        _check_name(name)
    given = {name.lower(): value for name, value in options.items()}

    def get(name: str) -> str | None:
        return given.get(name.lower())

    directories = tuple(_words(get("log.dirs") or ""))
    if not directories:
        raise BadOption("the option log.dirs is missing: the broker's log directories, or a copy")
    level = get("isolation.level") or get(_ISOLATION) or "read_uncommitted"
    try:
        isolation = IsolationLevel(level.lower())
    except ValueError:
        raise BadOption(f"isolation.level: {level} is no isolation level") from None
    ends = [name for name in KNOWN if name.startswith("ending") and get(name) is not None]
    if streaming and ends:
        raise BadOption(f"{ends[0]} has no meaning in a streaming query")
    strategy = (get("startingOffsetsByTimestampStrategy") or "error").lower()
    if strategy not in ("error", "latest"):
        raise BadOption(
            f"startingOffsetsByTimestampStrategy: {strategy} is neither error nor latest"
        )
    most, least = (_positive(f"{which}OffsetsPerTrigger", get) for which in ("max", "min"))
    if most is not None and least is not None and least > most:
        raise BadOption(f"minOffsetsPerTrigger ({least}) is above maxOffsetsPerTrigger ({most})")
    start, end = _bound(get, "starting", LATEST if streaming else EARLIEST), _bound(get, "ending")
    if streaming is False:
        _check_order(start, end)
    return SourceOptions(
        request=ScanRequest(
            directories=directories,
            **_topics(get("subscribe"), get("subscribePattern"), get("assign")),
            isolation=isolation,
            beyond_high_watermark=_flag("beyondHighWatermark", get("beyondHighWatermark"), False),
            split_bytes=_number("splitBytes", get("splitBytes"), _SPLIT_BYTES),
            split_offsets=_positive("maxRecordsPerPartition", get) or 0,
        ),
        start=start,
        end=end,
        start_is_strict=strategy == "error",
        include_headers=_flag("includeHeaders", get("includeHeaders"), False),
        fail_on_data_loss=_flag("failOnDataLoss", get("failOnDataLoss"), True),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_s=_seconds("maxTriggerDelay", get("maxTriggerDelay")),
        min_partitions=_positive("minPartitions", get) or 0,
        push_down_predicate=_flag("pushDownPredicate", get("pushDownPredicate"), False),
    )


def _check_name(name: str) -> None:
    lower = name.lower()
    if lower in _REFUSED:
        raise BadOption(f"the option {name} is not supported: {_REFUSED[lower]}")
    if lower.startswith("kafka."):
        # Only this one of a client's options decides which records there are.
        if lower != _ISOLATION and get_close_matches(lower, [_ISOLATION], cutoff=0.85):
            raise BadOption(f"unknown option {name}; is {_ISOLATION} meant?")
    elif lower not in _NAMES:
        near = get_close_matches(lower, _NAMES, n=1)
        meant = f"is {_NAMES[near[0]]} meant?" if near else f"there are {', '.join(KNOWN)}"
        raise BadOption(f"unknown option {name}; {meant}")


def _check_order(start: Bound, end: Bound) -> None:
    """Raise BadOption if a batch query would begin at the end, or after it."""
    at_end = [where for where, position in start.partitions.items() if position == LATEST]
    if start.default == LATEST or at_end:
        raise BadOption("startingOffsets: a batch query that begins at the latest offset is empty")
    pairs = [(start.default, end.default, "all partitions")]
    both = start.partitions.keys() & end.partitions.keys()
    pairs += [(start.partitions[where], end.partitions[where], str(where)) for where in both]
    for first, last, where in pairs:
        if first.kind is last.kind and first.value > last.value:
            raise BadOption(f"the start of {where}, {first.value}, is after its end, {last.value}")


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
        pattern = pattern.strip()
        if not pattern:
            raise BadOption("subscribePattern is empty")
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadOption(f"subscribePattern: {error}") from None
        # A pattern never means the topics that coordinators write, as for a client of a broker.
        flags = re.match(r"(?:\(\?[aiLmsux]+\))*", pattern)
        assert flags is not None
        return {"pattern": rf"{flags[0]}(?!(?:{_INTERNAL})\Z)(?:{pattern[flags.end() :]})"}
    table = _json("assign", assign or "")
    try:
        return {"assign": tuple(TopicPartition(t, int(p)) for t, ps in table.items() for p in ps)}
    except (TypeError, ValueError):
        raise BadOption(f'assign: {assign} is not like {{"orders":[0,1]}}') from None


def _bound(get: Any, prefix: str, default: Position = LATEST) -> Bound:
    """Parse one end by the kafka source's three options, in its order: one time, times, offsets."""
    name = f"{prefix}Timestamp"
    if (time := get(name)) is not None:
        return Bound(_time(name, _number(name, time, 0)))
    name = f"{prefix}OffsetsByTimestamp"
    if (text := get(name)) is not None:
        times = {where: _time(name, ms) for where, ms in _table(name, text).items()}
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


def _time(name: str, ms: int) -> Position:
    if not -(2**63) <= ms < 2**63:
        raise BadOption(f"{name}: {ms} is no timestamp of Kafka, which has 64 bits")
    return Position.timestamp(ms)


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


def _positive(name: str, get: Any) -> int | None:
    if (text := get(name)) is None:
        return None
    if (number := _number(name, text, 0)) <= 0:
        raise BadOption(f"{name}: {text} is not positive")
    return number


def _seconds(name: str, text: str | None) -> float:
    """Parse Spark's form of a duration: a number with a unit, or of milliseconds."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", (text or _MAX_TRIGGER_DELAY).strip().lower())
    if found is None or (found[2] or "ms") not in _UNITS:
        raise BadOption(f"{name}: {text} is no duration, as 15m or 90s is")
    return int(found[1]) * _UNITS[found[2] or "ms"]


def _flag(name: str, text: str | None, default: bool) -> bool:
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise BadOption(f"{name}: {text} is neither true nor false")
    return text.lower() == "true"


def is_timed(position: Position) -> bool:
    """Whether the position is a time."""
    return position.kind is Kind.TIMESTAMP
