"""Compiles the hot modules of this checkout, if they have changed: see scripts/compile."""

import fcntl
import json
import shutil
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from os import getpid
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, time
from typing import Final

from config.form import NOTES, Unusable, compiled_directory, fresh_notes, note_of
from pykafkalog_build.compiled_modules import MODULES, ROOMS
from pykafkalog_build.compiling import CannotCompile, compile_modules

ROOT: Final = Path(__file__).resolve().parents[1]
KEPT_S: Final = 86_400
"""How long what earlier sources gave stays: a broker that runs may import from it yet."""


def sources() -> Iterator[Path]:
    yield ROOT / "publishing" / "pykafkalog_build" / "compiled_modules.py"
    for room in ROOMS:
        yield from (ROOT / room).rglob("*.py")
        yield from (ROOT / room).rglob("*.pyi")


def is_up_to_date(latest: Path) -> bool:
    try:
        return fresh_notes(ROOT, latest) is not None
    except Unusable as reason:
        print(f"What is there cannot be used: {reason}.", file=sys.stderr)
        return False


def compiled() -> str:
    latest = compiled_directory(ROOT)
    latest.parent.mkdir(parents=True, exist_ok=True)
    with (latest.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_up_to_date(latest):
            return "The compiled modules are up to date."
        began = monotonic()
        noted = {str(file.relative_to(ROOT)): note_of(file) for file in sources()}
        made = latest.with_name(f"{latest.name}.{time():.0f}.{getpid()}")
        with TemporaryDirectory(prefix="pykafkalog-") as work:
            compile_modules(ROOT, MODULES, made, Path(work))
        notes = {
            "sources": noted,
            "made": {
                str(file.relative_to(made)): note_of(file)
                for file in made.rglob(f"*{EXTENSION_SUFFIXES[0]}")
            },
        }
        (made / NOTES).write_text(json.dumps(notes), "utf-8")
        link = made.with_name("new")
        link.unlink(missing_ok=True)
        link.symlink_to(made.name)
        link.rename(latest)
        for earlier in latest.parent.glob(f"{latest.name}.*"):
            if earlier != made and earlier.stat().st_mtime < time() - KEPT_S:
                shutil.rmtree(earlier)
        return f"Compiled {len(MODULES)} modules in {monotonic() - began:.0f} s."


def main() -> int:
    try:
        print(compiled())
    except CannotCompile as error:
        print(f"The hot modules stay as they are, not compiled: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
