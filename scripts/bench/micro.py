"""Measures single functions and paths in this process: user microseconds, or byte codes.

    .venv/bin/python scripts/bench/micro.py                              every case
    .venv/bin/python scripts/bench/micro.py codec/ 'handler/fetch*'      those that match
    .venv/bin/python scripts/bench/micro.py connection/ --count --top 20 byte codes, and where
    .venv/bin/python scripts/bench/micro.py handler/ --json before.json  keeps the figures
    .venv/bin/python scripts/bench/micro.py handler/ --compare before.json

records/   functions on a record batch          handler/     codec, handler and log of a request
codec/     generated code for a message         connection/  a request from its bytes to its reply

`connection/produce` counts all of a Produce request but its writes, whose cost is the kernel's. The
other connections are on a socket, with their client in the same loop; no connection yields by time.
On a crowded machine count, or compare two runs in alternation. The compiled form runs if there is
one (scripts/compile), and PYKAFKALOG_PURE=1 has the other one run; byte codes are those of what is
not compiled.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from config.form import choose_form

choose_form()

from measuring import Figure, counted, load, report, timed
from micro_cases import CASES

from broker.network import connection_state


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=["*"], help="patterns; a room is `codec/`")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", type=int, help="in a round; default: what takes a moment")
    parser.add_argument("--count", action="store_true", help="byte codes instead of time")
    parser.add_argument("--top", type=int, default=0, help="with --count: functions, too")
    parser.add_argument("--list", action="store_true", help="only name the cases")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--compare", type=Path, help="show the ratio to figures of --json")
    args = parser.parse_args()
    patterns = [f"{pattern}*" if pattern.endswith("/") else pattern for pattern in args.cases]
    chosen = [name for name in CASES if any(fnmatchcase(name, pattern) for pattern in patterns)]
    if not chosen:
        parser.error("no case matches; --list names them")
    if args.list:
        print(*chosen, sep="\n")
        return 0
    # Yields depend on the time that work took; only none at all is the same number in every run.
    vars(connection_state).update(CONNECTION_TURN_S=float("inf"))

    def figures() -> Iterator[tuple[str, Figure]]:
        for name in chosen:
            directory = Path(tempfile.mkdtemp(prefix="bench-"))
            try:
                run = CASES[name](directory)
                yield (
                    name,
                    counted(run, args.top)
                    if args.count
                    else timed(run, args.rounds, args.operations),
                )
            finally:
                shutil.rmtree(directory)

    kept = report(figures(), load(args.compare))
    if args.json is not None:
        args.json.write_text(json.dumps(kept, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
