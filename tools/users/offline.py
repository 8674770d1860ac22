"""Users of a broker that does not run, by a program of its own: `broker.offline.users`."""

import argparse
import json
from collections.abc import Sequence

from tools.console import say
from tools.daemon_module import answer_of
from tools.users.listing import Users


def change(args: argparse.Namespace, password: str | None, mechanisms: Sequence[str]) -> Users:
    """Do what the arguments say; return all users, or the one that they name.

    Raises CommandError.
    """
    words = [args.offline, *(f"--override={text}" for text in args.override)]
    words += [f"--mechanism={name}" for name in mechanisms]
    if args.add is not None:
        words += [f"--add={args.add}", f"--iterations={args.iterations}"]
    elif args.remove is not None:
        words.append(f"--remove={args.remove}")
    answer = answer_of("users", *words, told=json.dumps(password))
    if answer["start_refused"] and not args.json:
        reason = answer["start_refused"].rstrip(".")
        say(f"The broker does not start on this file as it is: {reason}.")
    return {user["name"]: user["mechanisms"] for user in answer["users"]}
