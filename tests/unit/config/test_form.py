"""Which form of the hot modules is imported."""

import json
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from config.form import (
    LIBRARY,
    PURE_VARIABLE,
    SOURCES,
    choose_form,
    compiled_directory,
    form_that_runs,
    is_fresh,
    keep_to_sources,
    note_of,
)


@pytest.fixture(autouse=True)
def _finders_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [one for one in sys.meta_path if type(one).__name__ != "_CompiledModules"]
    monkeypatch.setattr(sys, "meta_path", others)
    monkeypatch.delenv(PURE_VARIABLE, raising=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one module, compiled from what it is now."""
    (tmp_path / "hot.py").write_text("ANSWER = 42\n")
    directory = compiled_directory(tmp_path)
    for name in ("hot", *[LIBRARY.replace(".", "/")]):
        file = directory / f"{name}{EXTENSION_SUFFIXES[0]}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    noted = {"hot.py": note_of(tmp_path / "hot.py")}
    (directory / SOURCES).write_text(json.dumps(noted))
    return tmp_path


def finders() -> set[str]:
    return {type(finder).__name__ for finder in sys.meta_path}


def test_compiled_modules_are_taken_while_their_sources_are_as_they_were(checkout: Path) -> None:
    choose_form(checkout)
    (finder,) = [one for one in sys.meta_path if type(one).__name__ == "_CompiledModules"]
    spec = finder.find_spec("hot", None)
    assert spec is not None and str(spec.origin).endswith(EXTENSION_SUFFIXES[0])
    assert finder.find_spec("cold", None) is None
    assert form_that_runs() == "compiled"


@pytest.mark.parametrize("text", ["ANSWER = 43\n", "ANSWER = 420\n"], ids=["as long", "longer"])
def test_none_is_taken_once_a_source_has_changed(checkout: Path, text: str) -> None:
    (checkout / "hot.py").write_text(text)
    os.utime(checkout / "hot.py", ns=(1, 1))
    choose_form(checkout)
    assert "_CompiledModules" not in finders()


def test_a_source_that_was_only_written_again_is_as_it_was(checkout: Path) -> None:
    os.utime(checkout / "hot.py", ns=(1, 1))
    assert is_fresh(checkout, compiled_directory(checkout))


def test_none_is_taken_where_a_source_is_gone_or_nothing_was_compiled(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (checkout / "hot.py").unlink()
    assert not is_fresh(checkout, compiled_directory(checkout))
    choose_form(tmp_path_factory.mktemp("other"))
    assert "_CompiledModules" not in finders()


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
