"""Tables: nothing is cut or decorated in a pipe, nothing is cut on a terminal."""

import pytest

from tools.tables import print_table

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
