"""Makes the copy of the project from which setuptools builds a wheel:

    pyproject.toml, README.md, LICENSE     as they are
    pykafkalog/                            the public face, from the folder of the same name
    pykafkalog/storage/ …                  a room each

`[tool.setuptools.packages.find]` lists the packages, as for an editable install and a source
distribution; its top-level packages other than `pykafkalog` are the rooms.
"""

import shutil
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from setuptools import find_packages

from pykafkalog_build.problems import CannotPublish, CannotRewrite
from pykafkalog_build.rewriting import PACKAGE, rewrite
from pykafkalog_build.rooms import Rooms

_SETUP: Final = """\
from setuptools import Distribution, setup


class Platform(Distribution):
    def has_ext_modules(self):
        return True


setup(distclass=Platform)
"""
"""Has setuptools name the wheel for this platform: it holds modules that were compiled before."""

_COMPILED: Final = frozenset({".pyc", ".pyo"})
_WITH_IMPORTS: Final = frozenset({".py", ".pyi"})


def stage(project: Path, target: Path) -> None:
    """Make the copy of `project` in the empty directory `target`. Raises CannotPublish."""
    settings = stage_documents(project, target)
    packages = find_packages(
        str(project), include=settings["tool"]["setuptools"]["packages"]["find"]["include"]
    )
    rooms = _rooms(project, packages)
    problems = [
        f"{PACKAGE}/{path.name}: takes the place of the room `{path.stem}`"
        for path in sorted((project / PACKAGE).iterdir())
        if path.stem in rooms.names
    ]
    for package in packages:
        place = Path(*package.split("."))
        published = target / (place if _is_face(package) else PACKAGE / place)
        published.mkdir(parents=True, exist_ok=True)
        for file in _files(project / place):
            try:
                _publish(file, published / file.name, rooms)
            except CannotRewrite as error:
                name = place / file.name
                problems += [f"{name}:{line}: {reason}" for line, reason in error.problems]
    if problems:
        raise CannotPublish("\n".join(["what a wheel would get wrong:", *problems]))


def stage_to_compile(project: Path, target: Path) -> None:
    """`stage` for a wheel of one platform. Raises CannotPublish."""
    stage(project, target)
    (target / "setup.py").write_text(_SETUP, "utf-8")


def stage_documents(project: Path, target: Path) -> dict[str, Any]:
    """Copy pyproject.toml, the readme and licenses; return the settings of pyproject.toml."""
    settings = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    metadata = settings["project"]
    licenses = [path for pattern in metadata["license-files"] for path in project.glob(pattern)]
    for path in (project / "pyproject.toml", project / metadata["readme"], *licenses):
        shutil.copy2(path, target / path.name)
    return settings


def _rooms(project: Path, packages: Iterable[str]) -> Rooms:
    inside = [package for package in packages if not _is_face(package)]
    modules = {
        f"{package}.{file.stem}"
        for package in inside
        for file in _files(project / Path(*package.split(".")))
        if file.suffix == ".py"
    }
    return Rooms(
        names=frozenset(package.partition(".")[0] for package in inside),
        modules=frozenset({*inside, *modules}),
    )


def _is_face(package: str) -> bool:
    return package.partition(".")[0] == PACKAGE


def _files(directory: Path) -> list[Path]:
    """Return the files of one package, without those of its subpackages."""
    found = (path for path in directory.iterdir() if path.is_file())
    return sorted(path for path in found if path.suffix not in _COMPILED)


def _publish(file: Path, published: Path, rooms: Rooms) -> None:
    shutil.copy2(file, published)  # with mode and time, which wheels record
    if file.suffix in _WITH_IMPORTS:
        source = file.read_bytes()
        result = rewrite(source, rooms)
        if result != source:
            published.write_bytes(result)
            shutil.copystat(file, published)
