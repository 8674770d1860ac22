"""What commands print for people: rich's console, imported when something is printed."""

from typing import Any


def console() -> Any:
    """One that colours only where it is told to."""
    from rich.console import Console

    return Console(highlight=False)


def say(text: str = "") -> None:
    """A line as it is: not folded, its brackets no markup."""
    console().print(text, soft_wrap=True, markup=False)
