"""The steps of a cleaning that a child process runs: plain functions over a `state` that it keeps.

    begin → map_some … map_some → (begin_group → rewrite_some … rewrite_some) … → end
                                                     └ SegmentOverflow: begin_split → split_some …

Each call is a step of about `budget_bytes` (a larger batch is one step), so that a throttle can act
and a cleaning can be stopped in between. `state` belongs to one child and holds one cleaning, whose
map stays there between the steps. `begin` drops what is left of an earlier cleaning.

All raise OSError, and UncleanableLog for a log that cannot be cleaned.
"""

from typing import TYPE_CHECKING, Any, Final

from storage.cleaner.request import CleanRequest, MapStep, RewriteStep, SourceSegment
from storage.filesystem import FileSystem

if TYPE_CHECKING:  # whoever only names these functions does not pay for numpy
    from storage.cleaner.overflow import SegmentSplitter
    from storage.cleaner.rewrite import GroupRewriter

State = dict[str, Any]

_KEY: Final = "cleaning"


class _Cleaning:
    """The cleaning in progress in this child."""

    __slots__ = (
        "fs",
        "map_builder",
        "offset_map",
        "request",
        "rewriter",
        "splitter",
        "transactions",
    )

    def __init__(self, fs: FileSystem, request: CleanRequest) -> None:
        from storage.cleaner.mapping import MapBuilder
        from storage.cleaner.offset_map import OffsetMap
        from storage.cleaner.transactions import TransactionWalk

        self.fs = fs
        self.request = request
        self.offset_map = OffsetMap.of_bytes(
            request.map_bytes, request.load_factor, hash_seed=request.hash_seed
        )
        self.map_builder = MapBuilder(fs, request, self.offset_map)
        self.transactions = TransactionWalk(request.aborted)
        self.rewriter: GroupRewriter | None = None
        self.splitter: SegmentSplitter | None = None

    def close(self) -> None:
        """Close all files."""
        for part in (self.map_builder, self.rewriter, self.splitter):
            if part is not None:
                part.close()


def begin(state: State, fs: FileSystem, request: CleanRequest) -> None:
    """Begin a cleaning. Raises ValueError when the map's memory is too small for any cleaning."""
    end(state)
    state[_KEY] = _Cleaning(fs, request)


def map_some(state: State, budget_bytes: int) -> MapStep:
    """Read on in the dirty part."""
    return _of(state).map_builder.step(budget_bytes)


def begin_group(state: State, group: tuple[SourceSegment, ...]) -> None:
    """Make the `.cleaned` files of a group, which follows the one before in the log."""
    from storage.cleaner.rewrite import GroupRewriter

    cleaning = _of(state)
    cleaning.rewriter = GroupRewriter(
        cleaning.fs, cleaning.request, group, cleaning.offset_map, cleaning.transactions
    )


def rewrite_some(state: State, budget_bytes: int) -> RewriteStep:
    """Write on in the group. Raises SegmentOverflow."""
    cleaning = _of(state)
    assert cleaning.rewriter is not None
    step = cleaning.rewriter.step(budget_bytes)
    if step.is_done:
        cleaning.rewriter = None
    return step


def begin_split(state: State, source: SourceSegment) -> None:
    """Begin to split a segment, instead of writing the group that met its overflow (S-CMP-15)."""
    from storage.cleaner.overflow import SegmentSplitter

    cleaning = _of(state)
    if cleaning.rewriter is not None:
        cleaning.rewriter.discard()
        cleaning.rewriter = None
    cleaning.splitter = SegmentSplitter(cleaning.fs, cleaning.request, source)


def split_some(state: State, budget_bytes: int) -> tuple[RewriteStep, ...]:
    """Copy on; when all is copied, returns one finished step per piece, each with its segment."""
    splitter = _of(state).splitter
    assert splitter is not None
    return splitter.step(budget_bytes)


def end(state: State) -> None:
    """Drop the map and close the files; what was written stays."""
    cleaning = state.pop(_KEY, None)
    if cleaning is not None:
        cleaning.close()


def _of(state: State) -> _Cleaning:
    cleaning: _Cleaning = state[_KEY]
    return cleaning
