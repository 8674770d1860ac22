"""`pykafkalog pipeline compact`: merges small files of an archive's table."""

import argparse

from pipeline.arguments import add_command, add_spark_arguments, session_of

EXAMPLES = """\
  pykafkalog pipeline compact /lake/orders
  pykafkalog pipeline compact /lake/orders --target-mb 512"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
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
    """Compact a table to which no archive writes meanwhile. Raises PipelineError."""
    from pipeline.archive.compacting import compact_and_tell
    from pipeline.archive.description import Description
    from pipeline.archive.files import Files
    from pipeline.archive.place import Place, is_local
    from pipeline.archive.tables.opening import open_table, requirements
    from pipeline.errors import PipelineError

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
        with session_of(args, "compact", packages, settings, [held]) as session:
            text = Files(session).read(place.description)
            if text is None:
                raise PipelineError(f"{args.table} is no table of an archive")
            table = open_table(table_format, session, place)
            compact_and_tell(table, session, place, args.target_mb, as_json=args.json)
    return 0
