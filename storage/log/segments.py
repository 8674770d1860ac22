"""The segments of one log, ordered by base offset (Kafka's `LogSegments`).

A `SortedDict`: a lookup by offset is a bisection, adding at the end is cheap, and a fetch that goes
on to the next segment takes the next key. The active segment, which every append needs, is an
attribute. Iteration uses a tuple, which every change replaces: changes come once per segment, so
that costs little.

Only `Log` and its loader change it.
"""

from collections.abc import Iterable, Iterator

from sortedcontainers import SortedDict

from storage.log.segment import LogSegment


class LogSegments:
    """Base offset -> segment. Never empty once a log is loaded."""

    __slots__ = ("_by_base", "_snapshot", "active")

    active: LogSegment
    """The segment with the greatest base offset: the only one that is appended to."""

    def __init__(self) -> None:
        self._by_base: SortedDict = SortedDict()
        self._snapshot: tuple[LogSegment, ...] = ()

    def __len__(self) -> int:
        return len(self._by_base)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._snapshot)

    def __getitem__(self, base_offset: int) -> LogSegment:
        """The segment that starts exactly there. Raises KeyError."""
        segment: LogSegment = self._by_base[base_offset]
        return segment

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._by_base

    @property
    def first(self) -> LogSegment:
        """The oldest segment. Raises IndexError when there is none."""
        return self._snapshot[0]

    @property
    def base_offsets(self) -> list[int]:
        """The base offsets, ascending."""
        return list(self._by_base)

    @property
    def size(self) -> int:
        """Bytes of all record files."""
        return sum(segment.size for segment in self._by_base.values())

    def add(self, segment: LogSegment) -> None:
        """Add a segment; replaces one with the same base offset."""
        self._by_base[segment.base_offset] = segment
        self.active = self._by_base.peekitem(-1)[1]
        self._snapshot = tuple(self._by_base.values())

    def add_all(self, segments: Iterable[LogSegment]) -> None:
        """`add` for many: the tuple is replaced once, not once per segment."""
        self._by_base.update((segment.base_offset, segment) for segment in segments)
        if self._by_base:
            self.active = self._by_base.peekitem(-1)[1]
        self._snapshot = tuple(self._by_base.values())

    def remove(self, base_offset: int) -> LogSegment:
        """Take a segment out. Raises KeyError."""
        segment: LogSegment = self._by_base.pop(base_offset)
        self._snapshot = tuple(self._by_base.values())
        if self._by_base:
            self.active = self._by_base.peekitem(-1)[1]
        return segment

    def get(self, base_offset: int) -> LogSegment | None:
        """The segment that starts exactly there."""
        segment: LogSegment | None = self._by_base.get(base_offset)
        return segment

    def floor(self, offset: int) -> LogSegment | None:
        """The last segment with a base offset <= `offset`: where that offset lies, if anywhere."""
        at = self._by_base.bisect_right(offset)
        return self._by_base.peekitem(at - 1)[1] if at else None

    def higher(self, offset: int) -> LogSegment | None:
        """The first segment with a base offset > `offset`."""
        at = self._by_base.bisect_right(offset)
        return self._by_base.peekitem(at)[1] if at < len(self._by_base) else None

    def lower(self, offset: int) -> LogSegment | None:
        """The last segment with a base offset < `offset`."""
        at = self._by_base.bisect_left(offset)
        return self._by_base.peekitem(at - 1)[1] if at else None

    def from_offset(self, offset: int) -> list[LogSegment]:
        """The segment that holds `offset` and all after it."""
        at = max(self._by_base.bisect_right(offset) - 1, 0)
        return [self._by_base[base] for base in self._by_base.islice(at)]

    def between(self, first: int, end: int) -> list[LogSegment]:
        """Segments that start at or above `first` and below `end`."""
        return [self._by_base[base] for base in self._by_base.irange(first, end, (True, False))]

    def snapshot_from(self, offset: int) -> tuple[LogSegment, ...]:
        """`from_offset` as a tuple that never changes; fast if `offset` is near the end."""
        segments = self._snapshot
        at = len(segments)
        while at > 0:
            at -= 1
            if segments[at].base_offset <= offset:
                break
        return segments[at:]

    def _check(self) -> None:
        bases = list(self._by_base)
        assert bases == sorted(set(bases))
        assert all(base == segment.base_offset for base, segment in self._by_base.items())
        if bases:
            assert self.active is self._by_base[bases[-1]]
