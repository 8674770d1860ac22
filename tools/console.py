"""Output of commands for people: rich's console, imported when something is printed."""

from typing import Any


def console() -> Any:
    """Return a console that colours only what is marked up."""
    from rich.console import Console

    return Console(highlight=False)


def say(text: str = "") -> None:
    """Print a line unchanged: not folded, and its brackets are no markup."""
    console().print(text, soft_wrap=True, markup=False)
