"""The text of `sasl.jaas.config`: one login module of Java with its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        user_alice="alice-secret" user_bob="bob-secret";

Kafka's brokers, and Java clients, name SASL credentials in this form. No class is loaded: its name
says what the options mean. Tokens are those of Java's `StreamTokenizer` as Kafka's `JaasConfig`
sets it up, and so are the errors. A value needs quotes if it begins with a digit, or holds anything
but letters, digits and `. - _ $`. Comments are `/* ... */` and, outside of quotes, from a `/` to
the end of the line. Pure.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

_FLAGS: Final = frozenset(("required", "requisite", "sufficient", "optional"))
_TOKEN: Final = re.compile(
    r"""\s+ | /\*.*?(?:\*/|\Z) | /[^\n]*                        # nothing
      | (?P<quote>["'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n])*)(?:(?P=quote)|(?=\n)|\Z)
      | (?P<word>[A-Za-z_$\x80-\U0010ffff][A-Za-z0-9_$.\x80-\U0010ffff-]*)
      | (?P<other>[0-9.-]+ | .)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """The text is no JAAS configuration; the message has the words of Kafka's."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One login module. Options may be passwords, so they are not shown."""

    name: str
    """The name of a Java class."""
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name})"


def parse_jaas(text: str) -> LoginModule:
    """Return the one login module. Raises JaasError."""
    modules = list(_modules(_tokens(text)))
    if not modules:
        raise JaasError("Login module not specified in JAAS config")
    if len(modules) != 1:
        raise JaasError(
            f"JAAS config property contains {len(modules)} login modules, should be 1 module"
        )
    return modules[0]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_text: bool
    """A word or a quoted text, in contrast to a number or a sign."""


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        if found["quote"]:
            yield _Token(_ESCAPE.sub(_unescaped, found["quoted"]), is_text=True)
        elif found["word"]:
            yield _Token(found["word"], is_text=True)
        elif found["other"]:
            yield _Token(found["other"], is_text=False)


def _unescaped(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped[0] in "01234567":
        return chr(int(escaped, 8))
    return _ESCAPED.get(escaped, escaped)


def _modules(tokens: Iterator[_Token]) -> Iterator[LoginModule]:
    for name in tokens:
        flag = next(tokens, None)
        if flag is None:
            raise JaasError("Login module control flag not specified in JAAS config")
        if not flag.is_text:
            raise JaasError("Login module control flag is not available in the JAAS config")
        if flag.text.lower() not in _FLAGS:
            raise JaasError(f"Invalid login module control flag '{flag.text}' in JAAS config")
        yield LoginModule(name.text, _options(tokens))


def _options(tokens: Iterator[_Token]) -> dict[str, str]:
    options: dict[str, str] = {}
    for key in tokens:
        if key == _Token(";", is_text=False):
            return options
        sign, value = next(tokens, None), next(tokens, None)
        if sign != _Token("=", is_text=False) or value is None or not value.is_text:
            raise JaasError(
                f"Value not specified for key '{key.text}' in JAAS config: values stand in quotes"
            )
        options[key.text] = value.text
    raise JaasError("JAAS config entry not terminated by semi-colon")
