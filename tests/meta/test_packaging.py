"""A wheel installs one package with all modules: only a user would miss one that it lacks."""

import ast
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pykafkalog_build import compiled_modules
from tests.support.built_wheel import build_sdist, build_wheel
from tests.support.installation import ROOT

FACE = "pykafkalog"
ROOMS = ("config", "protocol", "storage", "tls", "broker", "tools", "pipeline")
NEVER = {"tests", "examples", "publishing", "pykafkalog_build", "scripts", "docs"}


def setting(*names: str) -> Any:
    value = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for name in names:
        value = value[name]
    return value


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def sources() -> dict[str, Path]:
    """Name in the wheel -> file, of all modules and stubs in the rooms and the face."""
    return {
        str(path.relative_to(ROOT) if room == FACE else FACE / path.relative_to(ROOT)): path
        for room in (FACE, *ROOMS)
        for path in (ROOT / room).rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    }


@pytest.mark.slow
def test_building_a_wheel_leaves_nothing_in_the_sources(tmp_path: Path) -> None:
    project = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(".*", "tests", "*.egg-info", "__pycache__", "build")
    shutil.copytree(ROOT, project, ignore=ignored)
    before = sorted(project.rglob("*"))
    build_wheel(tmp_path, project)
    after = [path for path in sorted(project.rglob("*")) if "__pycache__" not in path.parts]
    assert after == before


def test_every_room_is_named_wherever_rooms_are() -> None:
    """A new top-level folder of packages is a room, and must be published, typed and layered."""
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "examples"}
    assert folders == {FACE, *ROOMS}
    include = setting("tool", "setuptools", "packages", "find", "include")
    assert include == [name for room in (FACE, *ROOMS) for name in (room, f"{room}.*")]
    assert {FACE, *ROOMS} <= set(setting("tool", "mypy", "files"))
    assert set(setting("tool", "importlinter", "root_packages")) == {FACE, *ROOMS}


def test_the_modules_to_compile_are_there_and_import_only_what_may_switch_them_off() -> None:
    """A source that they import and that is not watched could change beneath them."""
    for module in compiled_modules.MODULES:
        imported = {
            node.module.partition(".")[0]
            for node in ast.walk(ast.parse((ROOT / module).read_text()))
            if isinstance(node, ast.ImportFrom) and node.module
        }
        assert imported & {FACE, *ROOMS} <= set(compiled_modules.ROOMS), module


def test_what_derives_from_a_compiled_class_is_compiled() -> None:
    """An object of another class cannot be made: TypeError, in the compiled form only."""
    trees = {name: ast.parse((ROOT / name).read_text()) for name in compiled_modules.MODULES}
    compiled = {
        (name.removesuffix(".py").replace("/", "."), node.name)
        for name, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    for path in sources().values():
        if str(path.relative_to(ROOT)) in trees:
            continue
        tree = ast.parse(path.read_text())
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if (node.module, alias.name) in compiled
        }
        bases = {
            ast.unparse(base)
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for base in node.bases
        }
        assert not bases & imported, path


def test_a_folder_with_modules_is_a_package() -> None:
    """Without its `__init__.py` it would be importable here, and missing in the wheel."""
    folders = {path.parent for path in sources().values()}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_a_wheel_installs_one_package_with_all_modules_and_nothing_else(wheel: Path) -> None:
    names = set(contents(wheel))
    assert {name for name in names if name.endswith((".py", ".pyi"))} == set(sources())
    info = f"{FACE}-{setting('project', 'version')}.dist-info"
    assert {name.partition("/")[0] for name in names} == {FACE, info}
    assert not {part for name in names for part in name.split("/")} & NEVER
    assert {
        f"{FACE}/py.typed",
        f"{FACE}/config/server.properties",
        f"{info}/licenses/LICENSE",
    } <= names


def imported(tree: ast.Module) -> Iterator[str]:
    """First part of each absolute import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def test_modules_of_a_wheel_compile_import_no_room_and_keep_their_lines(wheel: Path) -> None:
    published = contents(wheel)
    for name, path in sources().items():
        source, content = path.read_bytes(), published[name]
        assert not set(imported(ast.parse(content, name))) & set(ROOMS), name
        changed = [
            (old, new)
            for old, new in zip(source.split(b"\n"), content.split(b"\n"), strict=True)
            if old != new
        ]
        for old, new in changed:
            assert b"import " in old, name
            assert new.replace(b"pykafkalog.", b"").startswith(old), name


def test_the_metadata_says_whose_it_is_and_under_which_terms(wheel: Path) -> None:
    (metadata,) = (c for n, c in contents(wheel).items() if n.endswith("/METADATA"))
    lines = metadata.decode().splitlines()
    for wanted in (
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        "Author: The pykafkalog authors",
        "Project-URL: Source, https://github.com/pykafkalog/pykafkalog",
        "Classifier: Typing :: Typed",
    ):
        assert wanted in lines
    assert "Apache License" in (ROOT / "LICENSE").read_text()


@pytest.mark.slow
def test_a_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    copy = tmp_path / "checkout"  # setuptools leaves an egg-info beside the sources
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "*.egg-info", "__pycache__"))
    archive = build_sdist(tmp_path, copy)
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    assert not {path.name for path in unpacked.iterdir()} & {"tests", "scripts"}
    assert contents(build_wheel(tmp_path, unpacked)) == contents(wheel)


@pytest.mark.slow
def test_what_the_dockerfile_copies_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    _, build_stage, _ = (ROOT / "Dockerfile").read_text().split("\nFROM ")
    copied = [line.split()[1:] for line in build_stage.splitlines() if line.startswith("COPY ")]
    for *names, target in copied:
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, tmp_path / target)
            else:
                shutil.copy(ROOT / name, tmp_path / target)
    assert contents(build_wheel(tmp_path, tmp_path)) == contents(wheel)


def test_all_that_is_asked_for_is_pinned_for_the_tests() -> None:
    lines = (ROOT / "scripts/constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    found = {canonicalize_name(name): version for name, version in pins.items()}
    asked = [*setting("project", "dependencies")]
    for extra in setting("project", "optional-dependencies").values():
        asked += extra
    for requirement in map(Requirement, asked):
        if requirement.marker is None or requirement.marker.evaluate():
            assert found[canonicalize_name(requirement.name)] in requirement.specifier, requirement
