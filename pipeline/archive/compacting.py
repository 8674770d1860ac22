"""Compacts a table between runs of an archive, and prints the result."""

import json
from dataclasses import asdict
from typing import Any, Final

from pipeline.archive.files import Files
from pipeline.archive.place import Place
from pipeline.archive.tables.table import LakeTable
from pipeline.showing import print_json, size_of

MB: Final = 1_000_000


def compact_and_tell(
    table: LakeTable, session: Any, place: Place, target_mb: float, *, as_json: bool
) -> None:
    """Compact a table to which nothing is appended meanwhile, and print the result."""
    writer, committed = settled(session, place)
    done = table.compact(int(target_mb * MB), committed, writer)
    if as_json:
        print_json({"compaction": asdict(done)})
    else:
        print(
            f"compacted: {done.files_before:,} files became {done.files_after:,}"
            f" ({size_of(done.bytes_after)})"
        )


def settled(session: Any, place: Place) -> tuple[str | None, int | None]:
    """Return (the checkpoint's writer, its last batch that Spark will not repeat)."""
    files = Files(session)
    text = files.read(f"{place.checkpoint}/metadata")
    if text is None:
        return None, None
    done = [
        int(entry.name)
        for entry in files.entries(f"{place.checkpoint}/commits")
        if entry.name.isdigit()
    ]
    return str(json.loads(text)["id"]), max(done, default=None)
