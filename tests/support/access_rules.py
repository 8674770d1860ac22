"""Access rules for tests: strategies that make them collide, and a decision made rule by rule."""

from collections.abc import Iterable
from ipaddress import ip_address

from hypothesis import strategies as st

from protocol.acls.hosts import network_of
from protocol.acls.index import ALLOWED, DENIED, Decision
from protocol.acls.rules import WILDCARD, WILDCARD_PRINCIPAL, Pattern, Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType

TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
NAMES = ("a", "ab", "abc", "b", "orders-eu", "ä", "hardcode")
"""None begins with `*`: there Kafka's authorizer passes over rules for everything."""
PRINCIPALS = ("User:alice", "User:bob", "Group:alice")
HOSTS = ("10.0.0.1", "10.0.0.2", "192.168.1.7", "0:0:0:0:0:0:0:1")
OPERATIONS = tuple(one for one in Operation if one > Operation.ANY)

rules = st.builds(
    Rule,
    st.sampled_from(TYPES),
    st.sampled_from((*NAMES, WILDCARD)),
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    st.sampled_from((*PRINCIPALS, WILDCARD_PRINCIPAL)),
    st.sampled_from((*HOSTS, WILDCARD, "10.0.0.0/8", "10.0.0.2/31", "192.168.0.0/16", "::/64")),
    st.sampled_from(OPERATIONS),
    st.sampled_from((PermissionType.DENY, PermissionType.ALLOW)),
)

actions = st.tuples(
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS[1:]),
    st.sampled_from(TYPES),
    st.sampled_from(NAMES),
)
"""(principal, host, operation, type of resource, name)"""

_IMPLIED_BY = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def applies(rule: Rule, principal: str, host: str) -> bool:
    """Whether a rule is about a client."""
    if rule.principal not in (principal, WILDCARD_PRINCIPAL):
        return False
    if "/" in rule.host:
        return ip_address(host) in network_of(rule.host)
    return rule.host in (host, WILDCARD)


def covers(rule: Rule, resource_type: ResourceType, name: str) -> bool:
    """Whether a rule is about a resource."""
    if rule.resource_type is not resource_type:
        return False
    if rule.pattern_type is PatternType.PREFIXED:
        return name.startswith(rule.resource_name)
    return rule.resource_name in (name, WILDCARD)


def decide_naively(
    rules: Iterable[Rule],
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    *,
    allow_if_none: bool = False,
) -> Decision:
    """The decision that `RuleIndex.decide` should make, from all rules one by one."""
    about = [rule for rule in rules if covers(rule, resource_type, name)]
    if not about:
        return ALLOWED if allow_if_none else DENIED
    about.sort(key=_kafkas_order)
    mine = [rule for rule in about if applies(rule, principal, host)]
    exactly = {operation, Operation.ALL}
    for rule in mine:
        if rule.permission_type is PermissionType.DENY and rule.operation in exactly:
            return Decision(False, rule)
    implied = exactly | _IMPLIED_BY.get(operation, set())
    for rule in reversed(mine):
        if rule.permission_type is PermissionType.ALLOW and rule.operation in implied:
            return Decision(True, rule)
    return DENIED


def _kafkas_order(rule: Rule) -> tuple[object, ...]:
    """Longer names before shorter, a literal before a prefix, what covers everything last."""
    everything = rule.resource_name == WILDCARD and rule.pattern_type is PatternType.LITERAL
    rest = rule.pattern_type, rule.operation, rule.principal, rule.host, rule.permission_type
    return everything, -len(rule.resource_name), *rest


def decide_any_naively(
    rules: Iterable[Rule],
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
) -> bool:
    """Return the decision that `RuleIndex.decide_any` should make."""
    mine = [
        rule
        for rule in rules
        if rule.resource_type is resource_type
        and applies(rule, principal, host)
        and rule.operation in (operation, Operation.ALL)
    ]
    denied = {rule.pattern for rule in mine if rule.permission_type is PermissionType.DENY}
    allowed = {rule.pattern for rule in mine if rule.permission_type is PermissionType.ALLOW}
    everything = Pattern(resource_type, WILDCARD)
    if everything in denied:
        return False
    return everything in allowed or any(
        one not in denied
        and not any(
            other.pattern_type is PatternType.PREFIXED and one.name.startswith(other.name)
            for other in denied
        )
        for one in allowed
    )
