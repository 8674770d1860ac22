"""Partitions moved from one log directory of their broker to another (AlterReplicaLogDirs).

The broker fills a copy in the other directory and swaps it in when it has everything; until then it
is listed as a future log, with how many offsets are left.
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
"""How often a move is looked at."""
LOST_S: Final = 10.0
"""A copy that is in no directory for so long was given up: the swap itself takes milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What is to be done."""

    copy: Copy
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far moves are."""

    arrived: tuple[Move, ...]
    on_the_way: tuple[Move, ...]
    """Their copies are being filled."""
    lost: tuple[Move, ...]
    """Neither here nor there: given up, or moved elsewhere by somebody else."""
    bytes_done: int
    """Of the copies, those that arrived among them."""


def planned(found: Sequence[Directory], places: Iterable[Place], target: str) -> list[Move]:
    """What has to move, by partition. Raises CommandError for a directory that is not there.

    What lies there already stays, but for one that is on its way out: its move is given up.
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
    """The copies that are being filled, by partition."""
    copies = (copy for each in found for copy in each.copies if copy.is_future)
    return sorted(copies, key=lambda copy: (copy.place, copy.broker))


def begin(cluster: Brokers, moves: Sequence[Move]) -> None:
    """Have the brokers begin. Raises CommandError that names the first refusal."""
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
    """From what brokers tell now."""
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
    """Until all have arrived. Raises CommandError for a move that was given up."""
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
