"""Which form of the hot modules runs: the sources, or what mypyc has compiled from them.

Both do the same. The list of these modules, and how they are compiled, is in `publishing/`. In a
platform wheel the compiled modules lie beside the sources, and Python takes them. In a checkout
they lie in `build/compiled/`, for each kind of interpreter apart, and a program that calls
`choose_form` before it imports them takes them from there:

    build/compiled/cpython-311-x86_64-linux-gnu      the latest, a link
    build/compiled/cpython-311-…/notes.json          the sources it was made from, and what was made
    build/compiled/cpython-311-…/storage/log/log.…so

Compiled modules know each other's layout, and constants of other modules. So they are used all
together, and only while every source that the compiler has read is as it was. If they cannot be
used for another reason (cut, unreadable, of another system), the sources run, and a line says why.

PYKAFKALOG_PURE=1 has the sources run, in a checkout and in an installation.
"""

import json
import os
import sys
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final, TypeAlias

PURE_VARIABLE: Final = "PYKAFKALOG_PURE"
LIBRARY: Final = "pykafkalog.compiled__mypyc"
"""The library of all compiled modules; the file with a module's name is a stub before it."""
NOTES: Final = "notes.json"
"""Holds `Notes`."""
Note: TypeAlias = tuple[int, int, str]
"""Size, time of the last change in nanoseconds, and SHA-256 of a file."""
Notes: TypeAlias = dict[str, dict[str, Note]]
"""The notes of "sources" by their paths in the checkout, of "made" by those in the directory."""
_ROOT: Final = Path(__file__).resolve().parents[1]


class Unusable(Exception):
    """Why compiled modules that should be there cannot be used."""


def choose_form(root: Path = _ROOT) -> None:
    """Have later imports take the compiled modules of a checkout, if there are any and they fit its
    sources, and unless the sources are wanted."""
    if _sources_are_wanted():
        return
    directory = compiled_directory(root)
    try:
        notes = fresh_notes(root, directory)
        if notes is not None:
            _take(_CompiledModules(directory.resolve(), notes["made"]))
    except Unusable as reason:
        sys.stderr.write(
            f"pykafkalog: the sources run, because the modules in {directory} cannot be used: "
            f"{reason}. scripts/compile makes them anew.\n"
        )


def _take(finder: "_CompiledModules") -> None:
    """Have later imports ask `finder`. Raises Unusable if the library cannot be loaded."""
    sys.meta_path.insert(0, finder)
    try:
        import_module(LIBRARY)
    except ImportError as error:
        sys.meta_path.remove(finder)
        raise Unusable(str(error)) from error


def form_that_runs() -> str:
    """Return "compiled" or "pure"."""
    pure = _sources_are_wanted() or find_spec(LIBRARY) is None
    return "pure" if pure else "compiled"


def keep_to_sources() -> None:
    """Have later imports pass over compiled modules beside the sources, if these are wanted."""
    if _sources_are_wanted():
        sys.meta_path.insert(0, _SourcesOnly())


def _sources_are_wanted() -> bool:
    return os.environ.get(PURE_VARIABLE, "") not in ("", "0")


def compiled_directory(root: Path) -> Path:
    """The directory in which modules that are compiled in a checkout are looked for."""
    return root / "build" / "compiled" / EXTENSION_SUFFIXES[0].strip(".").partition(".")[0]


def fresh_notes(root: Path, directory: Path) -> Notes | None:
    """Return what `directory` holds, if that was compiled from the sources as they are now.

    Raises Unusable if it was, but something of it is missing, damaged or unreadable.
    """
    try:
        try:
            notes: Notes = json.loads((directory / NOTES).read_bytes())
            sources, made = notes["sources"].items(), notes["made"].items()
            if not all(_is_as_noted(root / name, *note) for name, note in sources):
                return None
        except FileNotFoundError:
            return None
        for name, note in made:
            if not _is_as_noted(directory / name, *note):
                raise Unusable(f"{name} is damaged")
    except OSError as error:
        raise Unusable(str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unusable(f"{NOTES} is damaged ({error})") from error
    return notes


def note_of(file: Path) -> Note:
    """Return what is noted of a file."""
    status = file.stat()
    return status.st_size, status.st_mtime_ns, sha256(file.read_bytes()).hexdigest()


def _is_as_noted(file: Path, size: int, changed_ns: int, digest: str) -> bool:
    status = os.stat(file)
    if status.st_size != size:
        return False
    # A checkout of another branch and back changes the time alone.
    return status.st_mtime_ns == changed_ns or note_of(file)[2] == digest


class _CompiledModules:
    """Finds the modules in a directory of compiled ones."""

    def __init__(self, directory: Path, names: Iterable[str]) -> None:
        suffix = EXTENSION_SUFFIXES[0]
        self._files = {
            name[: -len(suffix)].replace("/", "."): str(directory / name) for name in names
        }

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        file = self._files.get(name)
        return None if file is None else spec_from_file_location(name, file)


class _SourcesOnly:
    """Finds the sources of an installation whose compiled modules lie beside them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(LIBRARY.partition(".")[0] + "."):
            return None
        found = (_sources_of(directory).find_spec(name) for directory in path or ())
        return next((spec for spec in found if spec is not None), None)


@cache
def _sources_of(directory: str) -> FileFinder:
    return FileFinder(directory, (SourceFileLoader, SOURCE_SUFFIXES))
