"""Sentences for people, by rich's console, which is imported when something is printed."""

import sys

from config.terminal import console, shown


def say(text: str = "") -> None:
    """Print a line unchanged: not folded, and its brackets are no markup."""
    text = shown(text) if sys.stdout.isatty() else text
    console().print(text, soft_wrap=True, markup=False)
