"""The command line's list of commands, and those that other rooms hand in."""

import argparse

import pytest

from tools.__main__ import FurtherCommand, main


class Greeting:
    """A command of another room; counts how often it is imported."""

    def __init__(self) -> None:
        self.loaded = 0

    def load(self) -> "Greeting":
        self.loaded += 1
        return self

    def add_parser(self, commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        parser = commands.add_parser("greet", help="says it")
        parser.add_argument("name")
        parser.add_argument("--loudly", action="store_true")
        parser.set_defaults(run=lambda args: print("hello", args.name))


def further(greeting: Greeting) -> list[FurtherCommand]:
    return [FurtherCommand("greet", "Says hello.", greeting.load)]


def test_a_further_command_is_listed_without_being_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    greeting = Greeting()
    with pytest.raises(SystemExit):
        main(["--help"], further(greeting))
    assert "Says hello." in capsys.readouterr().out
    assert greeting.loaded == 0


def test_a_further_command_runs_with_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["greet", "you"], further(Greeting())) == 0
    assert capsys.readouterr().out == "hello you\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_all_commands_and_their_options(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell], further(Greeting())) == 0
    script = capsys.readouterr().out
    for word in ("get-offsets", "dry-run", "greet", "loudly"):
        assert word in script
