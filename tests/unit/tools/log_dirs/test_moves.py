"""Moves between log directories: planned, followed, given up."""

import json
from collections.abc import Iterator

import pytest

from tools.errors import CommandError
from tools.log_dirs import listing
from tools.log_dirs.moves import LOST_S, Move, Progress, follow, planned, progress
from tools.log_dirs.survey import Copy, Directory

A, B = ("orders", 0), ("orders", 1)


def copy(place: tuple[str, int], path: str, size: int = 100, *, future: bool = False) -> Copy:
    return Copy(place=place, broker=1, directory=path, size=size, lag=0, is_future=future)


def directory(path: str, *copies: Copy, error: str | None = None, broker: int = 1) -> Directory:
    return Directory(
        broker=broker, path=path, error=error, total_bytes=None, usable_bytes=None, copies=copies
    )


def test_what_has_to_move() -> None:
    found = [directory("/a", copy(A, "/a")), directory("/b", copy(B, "/b"))]
    assert [move.copy.place for move in planned(found, [A, B], "/b")] == [A]
    leaving = [directory("/a", copy(A, "/a")), directory("/b", copy(A, "/b", 7, future=True))]
    assert [move.target for move in planned(leaving, [A], "/a")] == ["/a"]  # gives that move up


def test_what_cannot_move() -> None:
    found = [directory("/a", copy(A, "/a")), directory("/b", error="kafka storage error")]
    with pytest.raises(CommandError, match="no log directory /c; known: /a, /b"):
        planned(found, [A], "/c")
    with pytest.raises(CommandError, match="/b of broker 1 is offline"):
        planned(found, [A], "/b")
    elsewhere = [directory("/a", copy(A, "/a")), directory("/b", broker=2)]
    with pytest.raises(CommandError, match="orders:0 lies on no broker that has the directory /b"):
        planned(elsewhere, [A], "/b")


def test_how_far_moves_are() -> None:
    moves = [Move(copy=copy(A, "/a"), target="/b"), Move(copy=copy(B, "/a"), target="/b")]
    begun = progress(moves, [directory("/a", copy(A, "/a"), copy(B, "/a")), directory("/b")])
    assert (len(begun.lost), begun.bytes_done) == (2, 0)
    future = directory("/b", copy(A, "/b", 60, future=True), copy(B, "/b", 130))
    half = progress(moves, [future])
    assert [move.copy.place for move in half.on_the_way] == [A]
    assert [move.copy.place for move in half.arrived] == [B]
    assert half.bytes_done == 160  # what B has got since it left does not count


def seen(*steps: Progress) -> Iterator[Progress]:
    yield from steps


def test_following_ends_when_all_arrived_or_one_was_given_up() -> None:
    move = Move(copy=copy(A, "/a"), target="/b")
    there = Progress(arrived=(move,), on_the_way=(), lost=(), bytes_done=100)
    going = Progress(arrived=(), on_the_way=(move,), lost=(), bytes_done=50)
    lost = Progress(arrived=(), on_the_way=(), lost=(move,), bytes_done=0)
    told: list[Progress] = []
    steps = seen(lost, going, lost, there)
    follow(lambda: next(steps), told.append, clock=lambda: 0.0, sleep=lambda _: None)
    assert told == [lost, going, lost, there]
    times = iter((0.0, LOST_S - 1, LOST_S))
    with pytest.raises(CommandError, match="orders:0 is not on its way to /b any more"):
        follow(lambda: lost, told.append, clock=lambda: next(times), sleep=lambda _: None)


def test_a_move_in_flight_tells_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    future = Copy(place=A, broker=1, directory="/b", size=60, lag=7, is_future=True)
    listing.show_moving([directory("/a", copy(A, "/a")), directory("/b", future)], as_json=False)
    _, line = capsys.readouterr().out.splitlines()
    assert line.split() == ["orders:0", "1", "/b", "60", "100", "7"]
    listing.show_moving([directory("/a", copy(A, "/a")), directory("/b", future)], as_json=True)
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["bytes"], told["bytes_to_copy"], told["lag"]) == (60, 100, 7)
    listing.show_moving([directory("/a", copy(A, "/a"))], as_json=False)
    assert capsys.readouterr().out == "Nothing is being moved.\n"
