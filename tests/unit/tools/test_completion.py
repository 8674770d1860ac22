"""What shells complete with: generated from the parsers, the pipeline's included."""

import argparse

import pytest

from tools.__main__ import FurtherCommand, main


class Greeting:
    """A command of another room."""

    def load(self) -> "Greeting":
        return self

    def add_parser(self, commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        commands.add_parser("greet", help="says it").add_argument("--loudly", action="store_true")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_all_commands_and_their_options_are_in_it(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    further = [FurtherCommand("greet", "Says hello.", Greeting().load)]
    assert main(["completion", shell], further) == 0
    script = capsys.readouterr().out
    for word in ("get-offsets", "dry-run", "greet", "loudly"):
        assert word in script
