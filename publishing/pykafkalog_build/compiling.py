"""Compiles the hot modules with mypyc: those that `compiled_modules` names.

For a checkout: `scripts/compile`, into `build/compiled/`. For a wheel: `pip wheel
--config-settings compiled=true .`, in the staged copy, beside the sources. `config/form.py` says
which form a program runs.

mypy sees no installed packages: their types count as Any, so that the result depends on the
sources alone, a wheel needs nothing but mypy to be built, and half the time is saved. mypyc writes
a file of C for each module, and a compiler runs for each processor; -O1, because -O2 takes half as
long again and most of the time of what it makes goes into Python's own functions.
"""

import io
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, redirect_stdout
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from sysconfig import get_config_var, get_path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pykafkalog_build.compiled_modules import MODULES
from pykafkalog_build.rewriting import PACKAGE

GROUP: Final = f"{PACKAGE}.compiled"
"""Names the library of all compiled modules; what is imported by a module's name is a stub."""
_MYPY: Final = ("--config-file=", "--no-site-packages", "--ignore-missing-imports")
_C: Final = ("-O1", "-g0", "-w", "-DNDEBUG")


class CannotCompile(Exception):
    """No C compiler, no Python.h, no mypy, or one of them refuses; the text says which."""


def find_compiler() -> list[str]:
    """The command of the C compiler. Raises CannotCompile."""
    compiler = shlex.split(os.environ.get("CC") or get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None or not Path(get_path("include"), "Python.h").exists():
        raise CannotCompile("there is no C compiler, or no Python.h")
    return compiler


def compile_modules(root: Path, modules: Sequence[str], target: Path, work: Path) -> None:
    """Compile `modules`, paths in `root`, to extension modules in `target`; C files go to `work`.

    Raises CannotCompile.
    """
    linker = find_compiler()
    extensions = _written_in_c(root, modules, work)
    flags = [*shlex.split(get_config_var("CCSHARED") or "-fPIC"), "-fwrapv", *_C]
    headers = (get_path("include"), work / Path(*GROUP.split(".")).parent)
    compiler = [*linker, *flags, *(f"-I{directory}" for directory in headers)]

    def compiled(extension: Any, source: str) -> str:
        made = f"{source}.o"
        _run(
            [*compiler, *(f"-I{name}" for name in extension.include_dirs), "-c", source, "-o", made]
        )
        return made

    def linked(extension: Any, objects: Sequence[str]) -> None:
        made = target.joinpath(*extension.name.split("."))
        made.parent.mkdir(parents=True, exist_ok=True)
        program = f"{made}{EXTENSION_SUFFIXES[0]}"
        _run([*linker, "-shared", "-s", "-o", program, *objects])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            (extension, [pool.submit(compiled, extension, source) for source in extension.sources])
            for extension in extensions
        ]
        links = [
            pool.submit(linked, extension, [part.result() for part in parts])
            for extension, parts in jobs
        ]
        for link in links:
            link.result()


def _written_in_c(root: Path, modules: Sequence[str], work: Path) -> list[Any]:
    """Have mypyc write C; returns setuptools' descriptions of the extension modules."""
    try:
        import setuptools  # noqa: F401  mypyc wants it imported before
        from mypyc.build import mypycify
    except ImportError as error:
        raise CannotCompile(f"there is no {error.name}") from None
    said = io.StringIO()
    try:
        with chdir(root), redirect_stdout(said):
            extensions: list[Any] = mypycify(
                [*_MYPY, *modules], multi_file=True, group_name=GROUP, target_dir=str(work)
            )
    except SystemExit:
        refused = [line for line in said.getvalue().splitlines() if ": error:" in line]
        raise CannotCompile("\n".join(refused) or said.getvalue()) from None
    return extensions


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotCompile(f"{command[0]} failed: {done.stderr.strip()}")


def compile_staged(project: Path) -> None:
    """Compile the modules of a copy that `staging` has made, beside the sources.

    Raises CannotCompile.
    """
    with TemporaryDirectory(prefix="pykafkalog-") as work:
        modules = [f"{PACKAGE}/{module}" for module in MODULES]
        compile_modules(project, modules, project, Path(work))
