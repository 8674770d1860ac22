"""The build backend (PEP 517, PEP 660): setuptools, with all rooms published within `pykafkalog`.

In the repository each room is a top-level package (`storage`, `broker`, …) and is imported so, for
type checkers, import contracts and editors, which read the tree as it is. A wheel must not install
such names: they would shadow a user's own `config` or `tools`. So a wheel is built from a staged
copy of the tree (`staging`), in which every room lies within `pykafkalog` and every import is
rewritten to match (`rewriting`). An import that cannot be rewritten faithfully ends the build with
`CannotPublish`, naming file and line.

With the config setting `compiled=true` (`pip wheel --config-settings compiled=true .`) the copy is
compiled as well, which takes mypy and a C compiler, and the wheel is one for this platform and
Python (`compiling`). Without it the wheel is pure and needs neither.

An editable install and a source distribution hold the sources as they are. A wheel built from the
source distribution is the same as one built from the repository.

The front end (pip, build) calls the functions below in the project's directory.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import build_meta

from pykafkalog_build.problems import CannotPublish
from pykafkalog_build.staging import stage, stage_documents, stage_to_compile

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
    """Return the requirements of setuptools beyond `[build-system] requires`."""
    with _staged(stage_documents):
        requirements: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    return [*requirements, *(["mypy[mypyc]>=2.4,<2.5"] if _compiled(config_settings) else [])]


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: ConfigSettings = None
) -> str:
    """Write the wheel's metadata; return the name of the dist-info directory."""
    target = str(Path(metadata_directory).absolute())
    with _staged(stage_to_compile if _compiled(config_settings) else stage):
        name: str = build_meta.prepare_metadata_for_build_wheel(target, config_settings)
    return name


def build_wheel(
    wheel_directory: str,
    config_settings: ConfigSettings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel; return its file name. Raises CannotPublish and CannotCompile."""
    target = str(Path(wheel_directory).absolute())
    metadata = None if metadata_directory is None else str(Path(metadata_directory).absolute())
    compiled = _compiled(config_settings)
    with _staged(stage_to_compile if compiled else stage):
        if compiled:
            from pykafkalog_build.compiling import compile_staged

            compile_staged(Path.cwd())
        name: str = build_meta.build_wheel(target, config_settings, metadata)
    return name


def _compiled(config_settings: ConfigSettings) -> bool:
    return (config_settings or {}).get("compiled") == "true"


@contextmanager
def _staged(copy: Callable[[Path, Path], object]) -> Iterator[None]:
    """Make `copy`'s copy of the project the working directory within the block."""
    with TemporaryDirectory(prefix="pykafkalog-") as name:
        copy(Path.cwd(), Path(name))
        with chdir(name):
            yield
