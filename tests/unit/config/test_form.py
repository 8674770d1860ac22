"""Which form of the hot modules is imported."""

import importlib.util
import json
import os
import shutil
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from config.form import (
    NOTES,
    PURE_VARIABLE,
    Unusable,
    choose_form,
    compiled_directory,
    form_that_runs,
    fresh_notes,
    keep_to_sources,
    note_of,
)


@pytest.fixture(autouse=True)
def _finders_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    of_forms = ("_CompiledModules", "_SourcesOnly")
    others = [one for one in sys.meta_path if type(one).__name__ not in of_forms]
    monkeypatch.setattr(sys, "meta_path", others)
    monkeypatch.delenv(PURE_VARIABLE, raising=False)


SUFFIX = EXTENSION_SUFFIXES[0]
EXTENSION = importlib.util.find_spec("crc32c._crc32c")
"""Stands for the library: it can be loaded."""
MADE = f"_crc32c{SUFFIX}"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one module, compiled from what it is now."""
    monkeypatch.setattr("config.form.LIBRARY", "_crc32c")
    monkeypatch.setitem(sys.modules, "_crc32c", None)  # put back afterwards
    del sys.modules["_crc32c"]
    (tmp_path / "hot.py").write_text("ANSWER = 42\n")
    directory = compiled_directory(tmp_path)
    directory.mkdir(parents=True)
    assert EXTENSION is not None and EXTENSION.origin is not None
    for name in (f"hot{SUFFIX}", MADE):
        shutil.copy(EXTENSION.origin, directory / name)
    note(tmp_path)
    return tmp_path


def note(checkout: Path) -> None:
    """Note what the checkout has as what was compiled."""
    directory = compiled_directory(checkout)
    notes = {
        "sources": {"hot.py": note_of(checkout / "hot.py")},
        "made": {name: note_of(directory / name) for name in (f"hot{SUFFIX}", MADE)},
    }
    (directory / NOTES).write_text(json.dumps(notes))


def finders() -> set[str]:
    return {type(finder).__name__ for finder in sys.meta_path}


def test_compiled_modules_are_taken_while_their_sources_are_as_they_were(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choose_form(checkout)
    (finder,) = [one for one in sys.meta_path if type(one).__name__ == "_CompiledModules"]
    spec = finder.find_spec("hot", None)
    assert spec is not None and str(spec.origin).endswith(EXTENSION_SUFFIXES[0])
    assert finder.find_spec("cold", None) is None
    assert form_that_runs() == "compiled"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["ANSWER = 43\n", "ANSWER = 420\n"], ids=["as long", "longer"])
def test_none_is_taken_once_a_source_has_changed(
    checkout: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "hot.py").write_text(text)
    os.utime(checkout / "hot.py", ns=(1, 1))
    choose_form(checkout)
    assert "_CompiledModules" not in finders()
    assert capsys.readouterr().err == "", "that is as it should be"


def test_a_source_that_was_only_written_again_is_as_it_was(checkout: Path) -> None:
    os.utime(checkout / "hot.py", ns=(1, 1))
    assert fresh_notes(checkout, compiled_directory(checkout))


def test_none_is_taken_where_a_source_is_gone_or_nothing_was_compiled(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (checkout / "hot.py").unlink()
    assert fresh_notes(checkout, compiled_directory(checkout)) is None
    choose_form(tmp_path_factory.mktemp("other"))
    assert "_CompiledModules" not in finders()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def change(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def make_unreadable(file: Path) -> None:
    """Make the file unreadable; root reads every file, so a directory takes its place."""
    file.unlink()
    file.mkdir()


DAMAGES = {
    "notes cut": (NOTES, cut, "damaged"),
    "notes empty": (NOTES, lambda file: file.write_bytes(b""), "damaged"),
    "notes that are a list": (NOTES, lambda file: file.write_text("[]"), "damaged"),
    "notes unreadable": (NOTES, make_unreadable, NOTES),
    "library cut": (MADE, cut, "damaged"),
    "library changed": (MADE, change, "damaged"),
    "library missing": (MADE, Path.unlink, "No such file"),
    "library unreadable": (MADE, make_unreadable, "damaged"),
    "module missing": (f"hot{SUFFIX}", Path.unlink, "No such file"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_used_is_not_and_a_line_says_why(
    checkout: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, do, reason = DAMAGES[damage]
    do(compiled_directory(checkout) / name)
    choose_form(checkout)
    assert "_CompiledModules" not in finders()
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
    assert "scripts/compile" in line
    with pytest.raises(Unusable):
        fresh_notes(checkout, compiled_directory(checkout))


def test_a_library_of_another_system_is_not_used(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (compiled_directory(checkout) / MADE).write_bytes(b"\x7fELF of another machine")
    note(checkout)
    choose_form(checkout)
    assert "_CompiledModules" not in finders()
    assert f"{MADE}: " in capsys.readouterr().err


def test_the_sources_run_if_they_are_asked_for(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PURE_VARIABLE, "1")
    choose_form(checkout)
    assert "_CompiledModules" not in finders()
    assert form_that_runs() == "pure"


def test_in_an_installation_the_sources_are_taken_from_beside_compiled_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hot.py").write_text("")
    (tmp_path / f"hot{EXTENSION_SUFFIXES[0]}").touch()
    keep_to_sources()
    assert "_SourcesOnly" not in finders()
    monkeypatch.setenv(PURE_VARIABLE, "1")
    keep_to_sources()
    finder = next(one for one in sys.meta_path if type(one).__name__ == "_SourcesOnly")
    spec = finder.find_spec("pykafkalog.hot", [str(tmp_path)])
    assert spec is not None and spec.origin == str(tmp_path / "hot.py")
    assert finder.find_spec("hot", [str(tmp_path)]) is None
