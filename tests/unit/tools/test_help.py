"""`--help` fits a terminal of 80 columns, tells exit codes, and has examples that parse."""

import re
import shlex

import pytest

from tools.__main__ import build_parser, main

COMMANDS = (
    "cluster",
    "topics",
    "groups",
    "configs",
    "users",
    "acls",
    "quotas",
    "transactions",
    "log-dirs",
    "get-offsets",
    "produce",
    "consume",
    "perf",
)
"""Those that speak to a broker."""

OFFLINE = ("dump-log", "fsck", "adopt", "explain-cleaner", "explain-retention", "sql")


def help_of(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("command", (*COMMANDS, *OFFLINE))
def test_help_fits_80_columns_and_tells_exit_codes_and_json(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = help_of(command, capsys, monkeypatch)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "exit code: 0" in text
    assert "--json" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_parses(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = re.findall(
        r"^  pykafkalog ([\w-]+ .*?)(?:  +[\w(].*)?$",
        help_of(command, capsys, monkeypatch).partition("examples:")[2],
        re.MULTILINE,
    )
    assert examples
    for example in examples:
        words = shlex.split(re.split(r" [|<>] ?", example)[0])
        assert build_parser().parse_args(words).command == words[0]
