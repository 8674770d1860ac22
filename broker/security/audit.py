"""The audit log: the operations that principals were allowed or denied, and by which rule.

The logger is Kafka's, `kafka.authorizer.logger`, and so are the lines. A denial of a request is
logged at INFO, a permission at DEBUG, and a decision that only filters (listings, authorized
operations) at TRACE. Control characters in names are escaped, so that a name makes no line of its
own, and long names are shortened.
Source: `StandardAuthorizerData.buildAuditMessage`, `logAuditMessage`.
"""

import logging
from typing import Final

from protocol.acls.index import Decision
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, ResourceType, pascal_name
from protocol.api_keys import ApiKey
from protocol.messages.registry import SPECS

AUDIT: Final = logging.getLogger("kafka.authorizer.logger")
ONLY_LOOKED_AT: Final = 5
"""The level TRACE, which clients may set (`resource_configs.log_levels`)."""
LONGEST_NAME: Final = 1_000


def audit_line(
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    api_key: int,
    count: int,
    decision: Decision,
) -> str:
    """Kafka's line about one decision."""
    said = "Allowed" if decision.allowed else "Denied"
    because = decision.because
    rule = f"MatchingAcl(acl={because})" if isinstance(because, Rule) else str(because)
    return (
        f"Principal = {_plain(principal)} is {said} operation = {operation.name} "
        f"from host = {host} on resource = {pascal_name(resource_type)}:LITERAL:{_plain(name)} "
        f"for request = {SPECS[ApiKey(api_key)].message} with resourceRefCount = {count} "
        f"based on rule {_plain(rule)}"
    )


def _plain(text: str) -> str:
    if len(text) > LONGEST_NAME:
        text = f"{text[:LONGEST_NAME]}..."
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
