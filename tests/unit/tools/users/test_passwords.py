"""A password is read from a file, a person or standard input."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.errors import CommandError
from tools.users import passwords


def stdin(monkeypatch: pytest.MonkeyPatch, text: str, *, terminal: bool = False) -> None:
    given = io.StringIO(text)
    given.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", given)


def typed(monkeypatch: pytest.MonkeyPatch, *texts: str) -> None:
    words: Iterator[str] = iter(texts)
    stdin(monkeypatch, "", terminal=True)
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(words))


def test_the_first_line_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(" geheim ü \nmore\n", encoding="utf-8")
    assert passwords.read(file, "alice") == " geheim ü "


@pytest.mark.parametrize("file", [None, Path("-")])
def test_the_first_line_of_standard_input(
    file: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, "secret\nmore\n")
    assert passwords.read(file, "alice") == "secret"


def test_a_person_types_it_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "secret", "secret")
    assert passwords.read(None, "alice") == "secret"
    typed(monkeypatch, "secret", "secert")
    with pytest.raises(CommandError, match="the two passwords differ"):
        passwords.read(None, "alice")


def test_a_person_may_type_none(monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "")
    with pytest.raises(CommandError, match="there is no password"):
        passwords.read(None, "alice")


def test_there_has_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in ("", "\n", "\nsecret"):
        stdin(monkeypatch, content)
        with pytest.raises(CommandError, match="there is no password"):
            passwords.read(None, "alice")
    with pytest.raises(CommandError, match=r"cannot read .*: No such file"):
        passwords.read(tmp_path / "absent", "alice")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(CommandError, match="it is no text"):
        passwords.read(tmp_path / "binary", "alice")
