"""Parsers of commands. They say errors of arguments in one sentence, with a hint at `--help`."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn


class CommandParser(argparse.ArgumentParser):
    """An argument parser; its subcommands are of this class too."""

    def error(self, message: str) -> NoReturn:
        """Print the error; exit with code 2."""
        self.exit(2, f"{self.prog}: {message}\n`{self.prog} --help` tells more.\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; the parser of a subcommand reports its own unknown arguments."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            meant = self._meant(parsed)
            known = [option for action in meant._actions for option in action.option_strings]
            guess = guess_of(unknown[0].partition("=")[0], known)
            meant.error(f"unknown arguments: {' '.join(unknown)}{guess}")
        return parsed

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            known = list(action.choices)
            guess = guess_of(value, known) or f"; there are {', '.join(known)}"
            self.error(f"there is no {str(action.metavar).lower()} {value!r}{guess}")
        super()._check_value(action, value)

    def _meant(self, parsed: argparse.Namespace) -> argparse.ArgumentParser:
        meant: argparse.ArgumentParser = self
        while (commands := _commands_of(meant)) is not None:
            name = getattr(parsed, commands.dest, None)
            if name not in commands.choices:
                break
            meant = commands.choices[name]
        return meant


def command_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    *,
    text: str,
    examples: str,
    description: str | None = None,
) -> argparse.ArgumentParser:
    """Add and return a command's parser; `text` describes it where `description` does not."""
    return commands.add_parser(
        name,
        help=text,
        description=description or text,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _commands_of(
    parser: argparse.ArgumentParser,
) -> "argparse._SubParsersAction[argparse.ArgumentParser] | None":
    actions: Sequence[argparse.Action] = parser._actions
    return next((one for one in actions if isinstance(one, argparse._SubParsersAction)), None)


def guess_of(word: str, known: Sequence[str]) -> str:
    """Return a question for the known word that is most like `word`, or nothing.

    `kafka-consumer-groups.sh` means groups, `--partitions` means --partition, `topic` means topics.
    """
    from difflib import get_close_matches

    within = [one for one in known if len(one) > len("--x") and one in word]
    longer = [one for one in known if len(word) > len("--") and one.startswith(word)]
    for one in (
        sorted(within, key=lambda one: word.rfind(one) + len(one))[-1:]
        or longer[:1]
        or (get_close_matches(word, known, 1, cutoff=0.7))
    ):
        return f"; did you mean {one}?"
    return ""
