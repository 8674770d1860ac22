"""The differences that are accepted, each with its reason.

A difference is accepted by the first rule that matches it. What no rule matches is a finding. Rules
without a decision of their own behind them say why here; the others name the paragraph in
docs/decisions/README.md.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.answers.differences import Difference

K, E = ApiKey, ErrorCode
When = Callable[[Difference, Any], bool]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A rule."""

    reason: str
    keys: frozenset[ApiKey] | None = None
    """None: every API."""
    path: str = ".*"
    """A pattern that the whole path matches."""
    when: When = lambda difference, request: True

    def covers(self, key: ApiKey, difference: Difference, request: Any) -> bool:
        """Whether this is the reason."""
        return (
            (self.keys is None or key in self.keys)
            and re.fullmatch(self.path, difference.path) is not None
            and self.when(difference, request)
        )


def accepted_reason(key: ApiKey, difference: Difference, request: Any) -> str | None:
    """Why the difference is accepted; None when it is not."""
    for rule in RULES:
        if rule.covers(key, difference, request):
            return rule.reason
    return None


RULES: Final[tuple[Accepted, ...]] = (
    Accepted(
        "the wording of messages is ours",
        path=r"(.*\.)?\w*(error_message|message)",
        when=lambda d, _: bool(d.theirs) and bool(d.ours),
    ),
    Accepted(
        "success has no message: null here, empty or NONE in Kafka",
        path=r"(.*\.)?\w*(error_message|message)",
        when=lambda d, _: d.theirs in ("", "NONE") and d.ours is None,
    ),
)
