"""Rules for single values, with the messages of Kafka's `ConfigDef`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Validator:
    """A rule for one value: `check` returns what is wrong with it, or None."""

    text: str
    """The rule for people, in Kafka's notation (`[1,...]`)."""
    check: Callable[[Any], str | None]
    keeps_list: bool = False
    """A list is checked as it was written, with what is empty or named twice."""


def at_least(minimum: float) -> Validator:
    """A number not below `minimum`; null is refused."""

    def check(value: Any) -> str | None:
        if value is None:
            return "Value must be non-null"
        return f"Value must be at least {minimum}" if value < minimum else None  # NaN passes

    return Validator(f"[{minimum},...]", check)


def between(minimum: float, maximum: float) -> Validator:
    """A number from `minimum` to `maximum`, both included."""

    def check(value: Any) -> str | None:
        if value is None:
            return "Value must be non-null"
        if value < minimum:
            return f"Value must be at least {minimum}"
        return f"Value must be no more than {maximum}" if value > maximum else None

    return Validator(f"[{minimum},...,{maximum}]", check)


def one_of(*allowed: str, ignore_case: bool = False) -> Validator:
    """One of a few words."""
    known = {word.lower() for word in allowed} if ignore_case else set(allowed)
    names = ", ".join(allowed)

    def check(value: Any) -> str | None:
        word = value.lower() if ignore_case and value is not None else value
        if word in known:
            return None
        case = " (case insensitive)" if ignore_case else ""
        return f"String must be one of{case}: {names}"

    return Validator(("(case insensitive) " if ignore_case else "") + f"[{names}]", check)


def list_of(*allowed: str) -> Validator:
    """A list of allowed words."""

    def check(value: Any) -> str | None:
        wrong = [word for word in value if word not in allowed]
        return f"String must be one of: {', '.join(allowed)}" if wrong else None

    return Validator(f"[{', '.join(allowed)}]", check)


def gzip_level() -> Validator:
    """A number from 1 to 9, or -1 for the library's default."""

    def check(value: Any) -> str | None:
        if value == -1 or 1 <= value <= 9:
            return None
        return "Value must be between 1 and 9 or equal to -1"

    return Validator("[1,...,9] or -1", check)
