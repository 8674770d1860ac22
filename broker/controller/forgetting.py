"""Freeing what a step of the controller has gathered, in turns.

Freeing a hundred thousand entries at once, as a list's end does, holds the loop for 50 ms.
"""

from typing import Any

from storage.waits import PAUSE


async def forgotten(large: list[Any] | dict[Any, Any]) -> None:
    """Empty `large`, which nobody needs any more."""
    if isinstance(large, dict):
        while large:
            large.popitem()
            await PAUSE
    else:
        while large:
            large.pop()
            await PAUSE
