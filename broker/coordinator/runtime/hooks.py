"""The parts of the shared runtime that differ from one coordinator to the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from broker.coordinator.runtime.decision import Decision, Write
from broker.coordinator.runtime.shard import Shard
from protocol.errors import ErrorCode
from protocol.records.compression import CompressionType

S = TypeVar("S", bound=Shard[Any])
D = TypeVar("D", bound=Decision[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorHooks(Generic[S, D]):
    """See the module."""

    new_shard: Callable[[int], S]
    """Makes the empty shard of a partition."""
    on_active: Callable[[S], None]
    """Called when a shard is loaded."""
    on_closed: Callable[[S, ErrorCode], None]
    """Called with a shard that was active and is not served any more, and the answer for its parked
    requests."""
    new_decision: Callable[[], D]
    encode: Callable[[Any], tuple[bytes, bytes | None]]
    """Returns a record's key and value as they are appended."""
    on_settled: Callable[[S, Write[Any], ErrorCode], None]
    """Called when a write has ended and was answered: to count, log, begin what replay made due."""
    compression: CompressionType = CompressionType.NONE
