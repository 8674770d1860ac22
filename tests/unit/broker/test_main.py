"""The command line (S-START-1)."""

import re
from pathlib import Path

import pytest

from broker.__main__ import Arguments, UsageError, main
from tools.__main__ import main as command_line


def test_s_start_1_no_arguments_print_the_usage_and_fail(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("USAGE: pykafkalog-broker")
    assert not printed.out


def test_help_and_version_succeed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "server.properties" in capsys.readouterr().out


def test_both_commands_say_the_same_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    said = capsys.readouterr().out
    assert re.fullmatch(r"pykafkalog \d+\.\d+\.\d+ \((pure|compiled)\)\n", said)
    with pytest.raises(SystemExit) as ended:
        command_line(["--version"])
    assert ended.value.code in (0, None)
    assert capsys.readouterr().out == said


def test_s_start_1_extra_arguments_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server.properties", "more", "words"]) == 1
    assert "Found non argument parameters: more, words" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["x", "--override"], ["x", "--override", "=v"], ["x", "--wrong"], ["--override", "a=b"]],
)
def test_s_start_1_what_makes_no_sense_is_a_usage_error(words: list[str]) -> None:
    with pytest.raises(UsageError):
        Arguments(words)


def test_s_start_1_overrides_may_be_repeated_and_the_last_one_wins() -> None:
    parsed = Arguments(
        ["--override", "a=1", "server.properties", "--override=b=x=y", "--override", "a=2"]
    )
    assert parsed.properties_file == "server.properties"
    assert parsed.overrides == {"a": "2", "b": "x=y"}


def test_a_bad_value_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.io.threads=none\n")
    assert main([str(file)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "num.io.threads" in error
