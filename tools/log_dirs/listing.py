"""Prints log directories and moves: as tables or JSON documents."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from tools.json_output import print_document
from tools.log_dirs.moves import Move, moving
from tools.log_dirs.survey import Copy, Directory
from tools.log_ends import place_name
from tools.tables import count_of, print_table, size


def show_directories(found: Sequence[Directory], *, as_json: bool) -> None:
    """Print a line for each directory."""
    if as_json:
        print_document([_directory(each) for each in found])
        return
    print_table(
        ("broker", "directory", "logs", "bytes", "volume", "usable", "state"),
        (
            (
                each.broker,
                each.path,
                len(each.copies),
                size(each.size),
                size(each.total_bytes),
                size(each.usable_bytes),
                each.error or "in use",
            )
            for each in found
        ),
    )


def show_topics(found: Sequence[Directory], *, as_json: bool) -> None:
    """Print a line for each topic in each directory, the biggest first."""
    sums: dict[tuple[int, str, str], list[int]] = {}
    for each in found:
        for copy in each.copies:
            total = sums.setdefault((each.broker, each.path, copy.place[0]), [0, 0])
            total[0] += 1
            total[1] += copy.size
    rows = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))
    if as_json:
        print_document(
            [
                {"broker": broker, "directory": path, "topic": topic, "logs": logs, "bytes": bytes_}
                for (broker, path, topic), (logs, bytes_) in rows
            ]
        )
        return
    print_table(
        ("topic", "broker", "directory", "logs", "bytes"),
        (
            (topic, broker, path, logs, size(bytes_))
            for (broker, path, topic), (logs, bytes_) in rows
        ),
    )


def show_copies(copies: Iterable[Copy], *, as_json: bool) -> None:
    """Print a line for each log."""
    if as_json:
        print_document([_copy(copy) for copy in copies])
        return
    print_table(
        ("partition", "broker", "directory", "bytes", "lag", "state"),
        (
            (
                place_name(copy.place),
                copy.broker,
                copy.directory,
                size(copy.size),
                max(copy.lag, 0),
                "moving here" if copy.is_future else "served",
            )
            for copy in copies
        ),
    )


def show_moving(found: Sequence[Directory], *, as_json: bool) -> None:
    """Print a line for each future log, with its progress."""
    sources = {
        (copy.broker, copy.place): copy
        for each in found
        for copy in each.copies
        if not copy.is_future
    }
    copies = moving(found)
    if as_json:
        print_document(
            [
                {**_copy(copy), "bytes_to_copy": sources[copy.broker, copy.place].size}
                for copy in copies
                if (copy.broker, copy.place) in sources
            ]
        )
    elif not copies:
        print("Nothing is being moved.")
    else:
        print_table(
            ("partition", "broker", "to", "bytes copied", "of", "offsets left"),
            (
                (
                    place_name(copy.place),
                    copy.broker,
                    copy.directory,
                    size(copy.size),
                    size(source.size if source else None),
                    max(copy.lag, 0),
                )
                for copy in copies
                for source in (sources.get((copy.broker, copy.place)),)
            ),
        )


def show_moves(moves: Sequence[Move], did: str, *, as_json: bool) -> None:
    """Print the moves; `did` says in words whether they are done."""
    if as_json:
        print_document(
            [
                {
                    "topic": move.copy.place[0],
                    "partition": move.copy.place[1],
                    "broker": move.copy.broker,
                    "from": move.copy.directory,
                    "to": move.target,
                    "bytes": move.copy.size,
                    "done": did,
                }
                for move in moves
            ]
        )
        return
    if not moves:
        print("All of it lies there already.")
        return
    print_table(
        ("partition", "broker", "from", "to", "bytes"),
        (
            (
                place_name(move.copy.place),
                move.copy.broker,
                move.copy.directory,
                move.target,
                size(move.copy.size),
            )
            for move in moves
        ),
    )
    print(f"{count_of(len(moves), 'partition')} {did}.")


def _directory(each: Directory) -> dict[str, Any]:
    fields = asdict(each)
    logs = len(fields.pop("copies"))
    return {**fields, "bytes": each.size, "logs": logs}


def _copy(copy: Copy) -> dict[str, Any]:
    fields = asdict(copy)
    topic, partition = fields.pop("place")
    size_of_all = fields.pop("size")
    return {"topic": topic, "partition": partition, "bytes": size_of_all, **fields}
