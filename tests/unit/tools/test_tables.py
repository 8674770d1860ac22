"""Tables: nothing is cut or decorated in a pipe, nothing is cut on a terminal."""

import pytest

from tools.tables import Coloured, print_table, size

ROWS = (("orders", 1234567, None), ("x" * 120, 1, "[a]"))


def test_a_pipe_gets_columns_of_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("topic", "lag", "client"), ROWS)
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["topic", "lag", "client"]
    assert first.split() == ["orders", "1234567", "-"]
    assert second.split() == ["x" * 120, "1", "[a]"]


def test_a_terminal_of_80_columns_shows_everything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    print_table(("topic", "lag", "client"), ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count("x") for line in lines) == 120
    assert any("1,234,567" in line for line in lines)


def test_sizes_and_colours_are_for_people_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ((Coloured("[bad]", "red"), size(1234567), size(-1)),)
    print_table(("state", "bytes", "usable"), rows)
    assert capsys.readouterr().out.splitlines()[1].split() == ["[bad]", "1234567", "-"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for name, value in {"COLUMNS": "80", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    print_table(("state", "bytes", "usable"), rows)
    shown = capsys.readouterr().out
    assert "1.2 MB" in shown
    assert "\x1b[31m[bad]" in shown


def test_eight_columns_of_large_numbers_fit_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of `topics --describe`: a number is not folded."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    columns = ("partition", "leader", "replicas", "in sync", "first", "end", "records", "bytes")
    row = (11, 3, "1,2,3", "1,2,3", 1_000_000, 25_000_000, 24_000_000, size(9_999_000_000))
    print_table(columns, (row,))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (line,) = (line for line in lines if "11" in line)
    assert "25,000,000" in line
    assert "10.0 GB" in line
