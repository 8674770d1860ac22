"""Wrong arguments: the usage of the command that was meant, the reason, and where to read on."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


class CommandParser(argparse.ArgumentParser):
    """A parser whose subcommands are of this class, too."""

    def error(self, message: str) -> NoReturn:
        """Exit code 2."""
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}\n`{self.prog} --help` tells more.\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What a subcommand does not know is told with that one's usage."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._meant(parsed).error(f"unknown arguments: {' '.join(unknown)}")
        return parsed

    def _meant(self, parsed: argparse.Namespace) -> argparse.ArgumentParser:
        meant: argparse.ArgumentParser = self
        while (commands := _commands_of(meant)) is not None:
            name = getattr(parsed, commands.dest, None)
            if name not in commands.choices:
                break
            meant = commands.choices[name]
        return meant


def _commands_of(
    parser: argparse.ArgumentParser,
) -> "argparse._SubParsersAction[argparse.ArgumentParser] | None":
    actions: Sequence[argparse.Action] = parser._actions
    return next((one for one in actions if isinstance(one, argparse._SubParsersAction)), None)
