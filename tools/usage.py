"""Errors of arguments: prints the usage of the subcommand, the reason, and a hint at `--help`."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


class CommandParser(argparse.ArgumentParser):
    """An argument parser; its subcommands are of this class too."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error; exit with code 2."""
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}\n`{self.prog} --help` tells more.\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; unknown arguments of a subcommand end with that subcommand's usage."""
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
