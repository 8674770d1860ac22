"""`ssl.principal.mapping.rules`: from the name in a certificate to the name of a user.

    RULE:pattern/replacement/[L|U]      a Java regular expression that must match the whole name
    DEFAULT                             the name as it is

Rules stand one after the other, separated by commas; the first that matches gives the name. Groups
are named $1, $2 in a replacement. After Kafka's `SslPrincipalMapper` (S-TLS-2).
"""

import re
from collections.abc import Callable
from typing import Final

from tls.problems import TlsProblem

_KEY: Final = "ssl.principal.mapping.rules"
_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*(?P<rule>{_RULE})\s*(?:,\s*|\Z)", re.ASCII)
_PARSER: Final = re.compile(_RULE, re.ASCII)
_CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}

Rule = Callable[[str], str | None]
"""Name in the certificate to name of the user; None if the rule does not match."""


class NoRule(Exception):
    """No rule matches a name, so its owner is nobody here."""


class PrincipalRules:
    """The rules of one listener."""

    __slots__ = ("_rules", "text")

    def __init__(self, text: str) -> None:
        """Raises TlsProblem for a rule that is none."""
        self.text: Final = text
        self._rules: Final = tuple(_parsed(text))

    def name(self, distinguished_name: str) -> str:
        """Return the name of the user. Raises NoRule."""
        for rule in self._rules:
            found = rule(distinguished_name)
            if found is not None:
                return found
        raise NoRule(f"No rules apply to {distinguished_name}, rules {self.text}")


def _parsed(text: str) -> list[Rule]:
    rules: list[Rule] = []
    for found in _SPLITTER.finditer(text.strip()):
        rule = found["rule"]
        parts = _PARSER.match(rule)
        if parts is None or parts.end() != len(rule):
            left = "" if parts is None else f", unmatched substring: `{rule[parts.end() :]}`"
            raise TlsProblem(f"{_KEY}: Invalid rule: `{rule}`{left}")
        if parts[1] is not None:
            rules.append(str)
        elif parts[2] is not None:
            rules.append(_rule(parts[2], parts[3], _CASES[parts[4]]))
    return rules


def _rule(pattern: str, replacement: str, case: Callable[[str], str]) -> Rule:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise TlsProblem(f"{_KEY}: {pattern} is no regular expression: {error}") from None
    pieces = _pieces(replacement, compiled.groups)

    def apply(name: str) -> str | None:
        if compiled.fullmatch(name) is None:
            return None
        return case(compiled.sub(lambda found: "".join(_filled(pieces, found)), name))

    return apply


def _pieces(replacement: str, groups: int) -> list[str | int]:
    """A replacement in Java's notation as texts and numbers of groups."""
    pieces: list[str | int] = []
    at = 0
    while at < len(replacement):
        sign = replacement[at]
        following = replacement[at + 1 : at + 2]
        if sign == "\\" and following:
            pieces.append(following)
            at += 2
        elif sign == "$" and following.isdecimal() and int(following) <= groups:
            end = at + 2
            while replacement[end : end + 1].isdecimal() and (
                int(replacement[at + 1 : end + 1]) <= groups
            ):
                end += 1
            pieces.append(int(replacement[at + 1 : end]))
            at = end
        elif sign in "\\$":
            raise TlsProblem(
                f"{_KEY}: the replacement {replacement} names a group that its pattern has not"
            )
        else:
            pieces.append(sign)
            at += 1
    return pieces


def _filled(pieces: list[str | int], found: re.Match[str]) -> list[str]:
    return [piece if isinstance(piece, str) else found[piece] or "" for piece in pieces]
