"""Whole numbers as arguments, with as many bits as the protocol has for them."""

import argparse
import re
from collections.abc import Callable
from typing import Final

_WHOLE: Final = re.compile(r"[+-]?\d{1,20}")


def whole(bits: int, *, least: int | None = None) -> Callable[[str], int]:
    """Return the `type` of an argument: a number with sign, of that many bits, from `least` on."""
    most = 2 ** (bits - 1) - 1
    lowest = -most - 1 if least is None else least

    def number(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not lowest <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {lowest} to {most}")
        return int(text)

    return number
