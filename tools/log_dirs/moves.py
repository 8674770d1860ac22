"""Moves partitions from one log directory of their broker to another (AlterReplicaLogDirs).

The broker fills a copy in the other directory and swaps it in when it is complete. Until then
DescribeLogDirs lists the copy as a future log, with its lag in offsets.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from protocol.errors import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from tools.errors import CommandError
from tools.log_dirs.survey import Copy, Directory
from tools.log_ends import Place, place_name
from tools.wire.brokers import Brokers
from tools.wire.refusals import sentence

LOOK_S: Final = 0.5
"""Seconds between two looks at the moves."""
LOST_S: Final = 10.0
"""A move whose copy is missing for this long was given up: the swap itself takes milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One move: a log and the directory that it goes to."""

    copy: Copy
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of all moves."""

    arrived: tuple[Move, ...]
    on_the_way: tuple[Move, ...]
    """Moves whose copy is being filled."""
    lost: tuple[Move, ...]
    """Moves without a copy in the target: given up, or redirected by another client."""
    bytes_done: int
    """Bytes of all copies, including those that arrived."""


def planned(found: Sequence[Directory], places: Iterable[Place], target: str) -> list[Move]:
    """Return the moves, by partition. Raises CommandError if the target cannot take one.

    A log that is in the target already needs no move, unless it is being moved away: then a move to
    its own directory cancels that.
    """
    paths = {(each.broker, each.path): each for each in found}
    if not any(path == target for _, path in paths):
        known = ", ".join(sorted({each.path for each in found}))
        raise CommandError(f"there is no log directory {target}; known: {known}")
    wanted = set(places)
    served = {
        (copy.broker, copy.place): copy
        for each in found
        for copy in each.copies
        if copy.place in wanted and not copy.is_future
    }
    leaving = {(copy.broker, copy.place) for copy in moving(found)}
    moves = []
    reachable: set[Place] = set()
    for owner, copy in sorted(served.items()):
        there = paths.get((copy.broker, target))
        if there is None:
            continue
        if there.error is not None:
            raise CommandError(f"{target} of broker {copy.broker} is offline ({there.error})")
        reachable.add(copy.place)
        if copy.directory != target or owner in leaving:
            moves.append(Move(copy=copy, target=target))
    missing = sorted(wanted - reachable)
    if missing:
        raise CommandError(
            f"{place_name(missing[0])} lies on no broker that has the directory {target}"
        )
    return moves


def moving(found: Iterable[Directory]) -> list[Copy]:
    """Return the future logs, sorted by partition."""
    copies = (copy for each in found for copy in each.copies if copy.is_future)
    return sorted(copies, key=lambda copy: (copy.place, copy.broker))


def begin(cluster: Brokers, moves: Sequence[Move]) -> None:
    """Ask the brokers to begin the moves. Raises CommandError that names the first refusal."""
    by_broker = sorted(moves, key=lambda move: (move.copy.broker, move.copy.place))
    for broker, of_broker in groupby(by_broker, key=lambda move: move.copy.broker):
        chosen = list(of_broker)
        topics = [
            AlterReplicaLogDirTopic(name=name, partitions=[move.copy.place[1] for move in of_topic])
            for name, of_topic in groupby(chosen, key=lambda move: move.copy.place[0])
        ]
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=chosen[0].target, topics=topics)]
        )
        answer = cluster.broker(broker).call(request, AlterReplicaLogDirsResponse)
        refused = [
            ((topic.topic_name, partition.partition_index), partition.error_code)
            for topic in answer.results
            for partition in topic.partitions
            if partition.error_code != ErrorCode.NONE
        ]
        if refused:
            place, code = refused[0]
            raise CommandError(
                f"{len(refused)} of {len(chosen)} moves were refused by broker {broker};"
                f" {place_name(place)}: {sentence(code)}"
            )


def progress(moves: Sequence[Move], found: Sequence[Directory]) -> Progress:
    """Return the progress of `moves`, from the directories as they are now."""
    copies = {
        (copy.broker, copy.place, copy.directory): copy for each in found for copy in each.copies
    }
    arrived: list[Move] = []
    on_the_way: list[Move] = []
    lost: list[Move] = []
    done = 0
    for move in moves:
        copy = copies.get((move.copy.broker, move.copy.place, move.target))
        if copy is None:
            lost.append(move)
            continue
        done += min(copy.size, move.copy.size)
        (on_the_way if copy.is_future else arrived).append(move)
    return Progress(
        arrived=tuple(arrived),
        on_the_way=tuple(on_the_way),
        lost=tuple(lost),
        bytes_done=done,
    )


def follow(
    look: Callable[[], Progress],
    tell: Callable[[Progress], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Look until all moves have arrived. Raises CommandError for a move that was given up."""
    lost_since: float | None = None
    while True:
        now = look()
        tell(now)
        if not now.on_the_way and not now.lost:
            return
        if not now.lost:
            lost_since = None
        elif lost_since is None:
            lost_since = clock()
        elif clock() - lost_since >= LOST_S:
            move = now.lost[0]
            raise CommandError(
                f"{place_name(move.copy.place)} is not on its way to {move.target} any more: the"
                f" log of broker {move.copy.broker} says why"
            )
        sleep(LOOK_S)
