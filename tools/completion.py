"""`pykafkalog completion`: a script that makes bash, zsh or fish complete the command line.

shtab generates the whole script from the parsers, so that a TAB runs only the shell's own code and
starts no Python.
"""

import argparse
from pathlib import Path
from typing import Final

from tools.usage import command_parser

SHELLS: Final = ("bash", "zsh", "fish")
_FILES: Final = frozenset({"FILE", "FILES", "PATH", "DIR", "DIR|TOPIC", "server.properties"})
"""Metavars of arguments that name a file or a directory."""
EXAMPLES: Final = """\
  pykafkalog completion bash > ~/.local/share/bash-completion/completions/pykafkalog
  pykafkalog completion zsh > ~/.zfunc/_pykafkalog      (fpath+=~/.zfunc before compinit)
  pykafkalog completion fish > ~/.config/fish/completions/pykafkalog.fish

New shells have it then. This one has it at once: eval "$(pykafkalog completion bash)"

exit code: 0 done; 2 wrong arguments"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    text = "Print what makes a shell complete commands and options."
    parser = command_parser(commands, "completion", text=text, examples=EXAMPLES)
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print the script. `args.whole` is the parser of the whole command line."""
    import shtab

    _mark_files(args.whole, shtab.FILE)
    print(shtab.complete(args.whole, shell=args.shell))


def _mark_files(parser: argparse.ArgumentParser, mark: object) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _mark_files(command, mark)
        elif action.type is Path or action.metavar in _FILES:
            action.complete = mark  # type: ignore[attr-defined]
