"""`pykafkalog pipeline compact`: small files of an archive's table become few."""

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from pipeline.arguments import add_command, add_spark_arguments, session_of

if TYPE_CHECKING:
    from pipeline.archive.place import Place
    from pipeline.archive.tables.table import LakeTable

EXAMPLES = """\
  pykafkalog pipeline compact /lake/orders
  pykafkalog pipeline compact /lake/orders --target-mb 512"""

MB: Final = 1_000_000


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "compact",
        text="Make few files of the many small ones that an archive wrote; safe to kill.",
        examples=EXAMPLES,
    )
    parser.add_argument("table", metavar="PATH")
    parser.add_argument("--state", metavar="PATH", help="as given to archive")
    parser.add_argument("--target-mb", type=float, default=128, help="of a file (default: 128)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_spark_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compact a table that nobody archives to meanwhile."""
    from pipeline.archive.description import Description
    from pipeline.archive.files import Files
    from pipeline.archive.place import Place, is_local
    from pipeline.archive.tables.opening import open_table, requirements
    from pipeline.errors import PipelineError
    from pipeline.failures import as_sentence
    from pipeline.session import log_of, stop_session

    place = Place.of(args.table, args.state)
    table_format = "parquet"
    if is_local(place.state):
        try:
            with open(place.description, encoding="utf-8") as file:
                table_format = Description.parse(file.read(), place.description).table
        except OSError:
            raise PipelineError(f"{args.table} is no table of an archive") from None
    with place.lock() as held:
        packages, settings = requirements(table_format, place)
        session = session_of(args, "compact", packages, settings, [held])
        try:
            text = Files(session).read(place.description)
            if text is None:
                raise PipelineError(f"{args.table} is no table of an archive")
            compact_table(open_table(table_format, session, place), session, place, args)
        except Exception as error:
            raise as_sentence(error, log_of(session)) from error
        finally:
            stop_session(session)
    return 0


def compact_table(
    table: "LakeTable", session: Any, place: "Place", args: argparse.Namespace
) -> None:
    """Compact, and say what became of it."""
    from dataclasses import asdict

    from pipeline.showing import print_json, size_of

    writer, committed = settled(session, place)
    done = table.compact(int(args.target_mb * MB), committed, writer)
    if args.json:
        print_json({"compaction": asdict(done)})
    else:
        print(
            f"compacted: {done.files_before:,} files became {done.files_after:,}"
            f" ({size_of(done.bytes_after)})"
        )


def settled(session: Any, place: "Place") -> tuple[str | None, int | None]:
    """(the writer of the checkpoint, its last batch that will not be given again)."""
    from pipeline.archive.files import Files

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
