"""The arguments of `pykafkalog sql`, and the run of a query."""

import argparse
import re
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tools.errors import CommandError
from tools.usage import command_parser

EXAMPLES = """\
  pykafkalog sql "select count(*) from orders" --log-dirs /tmp/kafka-logs
  pykafkalog sql "select partition, max(offset) from orders group by 1" \\
      --properties server.properties
  pykafkalog sql "select decode(value) from orders
      where timestamp > now() - interval 1 hour" --log-dirs /tmp/kafka-logs
  pykafkalog sql "select decode(value)->>'$.customer' as customer, count(*)
      from \\"web-orders\\" group by 1" --log-dirs /copies/logs --format csv

Each topic is a table: key, value (bytes), topic, partition, offset, timestamp,
timestampType, headers, and timestampMs, which holds any timestamp of Kafka. The
SQL is DuckDB's. Conditions on partition, offset and the timestamps decide
which parts of the log are read; how much that was stands on standard error.

exit code: 0 done; 1 the query or a log is wrong, standard error says what; 2
wrong arguments"""

HOUR_MS: Final = 3_600_000
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": HOUR_MS, "d": 24 * HOUR_MS}


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    text = "Query topics with SQL, from the files of a log directory."
    parser = command_parser(commands, "sql", text=text, examples=EXAMPLES)
    parser.add_argument("query", help="one SQL statement; - reads it from standard input")
    parser.add_argument(
        "--log-dirs",
        action="append",
        default=[],
        metavar="DIR[,DIR]",
        help="log directories, live ones or copies; may be repeated",
    )
    parser.add_argument(
        "--properties", metavar="FILE", help="server.properties that names log.dirs"
    )
    parser.add_argument(
        "--isolation-level",
        choices=("read_uncommitted", "read_committed"),
        default="read_committed",
        help="whether records of aborted and open transactions are seen (default: read_committed)",
    )
    parser.add_argument(
        "--format", choices=("table", "json", "csv"), default="table", help="default: table"
    )
    parser.add_argument("--json", action="store_true", help="as --format json")
    parser.add_argument(
        "--lateness",
        default="1h",
        metavar="TIME",
        help="no record is older than one before it by more than this, so that a range of times "
        "ends the reading; `any` assumes nothing of the order (default: 1h)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not tell what was read")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run the query. Raises CommandError."""
    missing = [name for name in ("duckdb", "pyarrow") if find_spec(name) is None]
    if missing:
        raise CommandError(
            f"{' and '.join(missing)} not installed; SQL is an extra: "
            "python -m pip install 'pykafkalog[sql]'"
        )
    from tools.sql.engine import Engine
    from tools.sql.output import WRITERS

    query = sys.stdin.read() if args.query == "-" else args.query
    engine = Engine(_directories(args), args.isolation_level, _lateness(args.lateness))
    begin = time.monotonic()
    try:
        names, rows = engine.run(query)
        WRITERS["json" if args.json else args.format](names, rows, sys.stdout)
        if not args.quiet:
            print(engine.account(time.monotonic() - begin), file=sys.stderr)
    finally:
        engine.close()


def _directories(args: argparse.Namespace) -> list[str]:
    named = [word.strip() for words in args.log_dirs for word in words.split(",") if word.strip()]
    if args.properties:
        from config.broker_config import BrokerConfig
        from config.definition import ConfigError
        from config.properties import load_properties

        try:
            text = Path(args.properties).read_text("iso-8859-1")
            named += BrokerConfig.parse(dict(load_properties(text))).log_dirs
        except OSError as error:
            raise CommandError(f"cannot read {args.properties}: {error.strerror}") from None
        except ConfigError as error:
            raise CommandError(f"--properties: {error}") from None
    if not named:
        raise CommandError("which logs? --log-dirs names directories, --properties their broker's")
    return [str(Path(one).absolute()) for one in named]


def _lateness(text: str) -> int | None:
    if text == "any":
        return None
    found = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text)
    if found is None:
        raise CommandError(f"--lateness: {text} is neither `any` nor like 30s, 10m, 1h or 2d")
    return int(found[1]) * _UNITS[found[2]]
