"""The build backend (PEP 517, PEP 660): setuptools, and one import name for what is published.

In the repository each room is a package of its own (`storage`, `broker`, …), and that is how the
sources import it, so that type checkers, import contracts and editors read the tree as it lies. A
wheel must not install such names: they would shadow a user's own `config` or `tools`. So a wheel is
built from a staged copy of the tree (`staging`), in which every room lies within `pykafkalog` and
every import says so (`rewriting`). What cannot be rewritten faithfully ends the build with
`CannotPublish`, naming file and line.

An editable install and a source distribution hold the sources as they are. A wheel built from the
source distribution is the one that the repository gives.

The front end (pip, build) calls the functions below in the project's directory.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import build_meta

from pykafkalog_build.problems import CannotPublish
from pykafkalog_build.staging import stage, stage_documents

__all__ = [
    "CannotPublish",
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ConfigSettings = Mapping[str, str | list[str] | None] | None

build_sdist = build_meta.build_sdist
build_editable = build_meta.build_editable
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable


def get_requires_for_build_wheel(config_settings: ConfigSettings = None) -> list[str]:
    """What setuptools needs beyond `[build-system] requires`."""
    with _staged(stage_documents):
        requirements: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    return requirements


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: ConfigSettings = None
) -> str:
    """The wheel's metadata; the name of the dist-info directory."""
    target = str(Path(metadata_directory).absolute())
    with _staged(stage):
        name: str = build_meta.prepare_metadata_for_build_wheel(target, config_settings)
    return name


def build_wheel(
    wheel_directory: str,
    config_settings: ConfigSettings = None,
    metadata_directory: str | None = None,
) -> str:
    """The wheel; its file name. Raises CannotPublish."""
    target = str(Path(wheel_directory).absolute())
    metadata = None if metadata_directory is None else str(Path(metadata_directory).absolute())
    with _staged(stage):
        name: str = build_meta.build_wheel(target, config_settings, metadata)
    return name


@contextmanager
def _staged(copy: Callable[[Path, Path], object]) -> Iterator[None]:
    """Within it the working directory is a copy of the project as it is published."""
    with TemporaryDirectory(prefix="pykafkalog-") as name:
        copy(Path.cwd(), Path(name))
        with chdir(name):
            yield
