"""All access rules, found by resource and client, and the decision about one action.

Semantics (S-ACL-2 to S-ACL-5; Kafka's `StandardAuthorizerData`)
* A rule applies if its pattern covers the resource, its principal is the client's or `User:*`, its
  host pattern matches the client's address, and its operation is the one asked for or ALL.
* A rule that allows READ, WRITE, DELETE or ALTER also allows DESCRIBE, one that allows
  ALTER_CONFIGS also DESCRIBE_CONFIGS. Rules that deny imply nothing.
* One rule that denies outweighs all that allow. Without any that applies the action is denied,
  unless no rule at all is about the resource and everyone is allowed then.
* The reason is the rule that Kafka names in its audit log: of those that deny the first in Kafka's
  order, of those that allow the last.

Structure: a table from pattern to client (principal, host pattern) to two sets of bits, and the
lengths of the prefixes in use. So a decision costs a look-up for each length, host pattern and
principal, however many rules there are. A second table by client answers `decide_any`.

One difference: a literal `*` covers every resource; Kafka passes over those whose own name begins
with `*` (decision 99).
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from protocol.acls.hosts import HostPatterns
from protocol.acls.rules import WILDCARD, WILDCARD_PRINCIPAL, Pattern, Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType


class Ground(StrEnum):
    """The ground of a decision that no rule makes; the values are Kafka's words."""

    SUPER_USER = "SuperUser"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"


class Decision(NamedTuple):
    """Whether an action is allowed, and why."""

    allowed: bool
    because: Rule | Ground


DENIED: Final = Decision(False, Ground.DEFAULT_DENY)
ALLOWED: Final = Decision(True, Ground.DEFAULT_ALLOW)

_IMPLYING: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


_DENYING: Final = {one: _bits(Operation.ALL) | _bits(one) for one in Operation}
"""Operation to the bits of those that rules against it have."""
_ALLOWING: Final = {one: bits | _bits(*_IMPLYING.get(one, ())) for one, bits in _DENYING.items()}

_Client = tuple[str, str]
"""(principal, host pattern) as rules have them."""


class _Grant:
    """The operations that rules of one pattern allow and deny to one client, as bits."""

    __slots__ = ("allowed", "denied")

    def __init__(self) -> None:
        self.allowed = 0
        self.denied = 0


class RuleIndex:
    """A set of rules that decides."""

    def __init__(self, rules: Iterable[Rule] = (), *, allow_if_none: bool = False) -> None:
        """`allow_if_none`: Kafka's `allow.everyone.if.no.acl.found`."""
        self._without_rules = ALLOWED if allow_if_none else DENIED
        self._patterns: dict[Pattern, dict[_Client, _Grant]] = {}
        self._clients: dict[tuple[ResourceType, _Client], dict[Pattern, _Grant]] = {}
        self._prefix_lengths: dict[ResourceType, dict[int, int]] = {}
        """The number of patterns by the length of their prefix, the longest first."""
        self._hosts = HostPatterns()
        self._size = 0
        for rule in rules:
            self.add(rule)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, rule: Rule) -> bool:
        grant = self._patterns.get(rule.pattern, {}).get((rule.principal, rule.host))
        return grant is not None and bool(_bits_of(grant, rule) >> rule.operation & 1)

    def patterns(self) -> list[Pattern]:
        """The patterns that rules have."""
        return list(self._patterns)

    def rules_of(self, pattern: Pattern) -> Iterator[Rule]:
        """Yield the rules with this pattern; they must not change meanwhile."""
        for (principal, host), grant in self._patterns.get(pattern, {}).items():
            for permission in (PermissionType.DENY, PermissionType.ALLOW):
                bits = grant.denied if permission is PermissionType.DENY else grant.allowed
                for operation in Operation:
                    if bits >> operation & 1:
                        yield Rule(*pattern, principal, host, operation, permission)

    # ---- changes

    def add(self, rule: Rule) -> bool:
        """Add a rule; return False if it is there already."""
        if rule in self:
            return False
        pattern, client = rule.pattern, (rule.principal, rule.host)
        by_client = self._patterns.get(pattern)
        if by_client is None:
            by_client = self._patterns[pattern] = {}
            self._count_prefix(pattern, 1)
        grant = by_client.get(client)
        if grant is None:
            grant = by_client[client] = _Grant()
            self._clients.setdefault((pattern.resource_type, client), {})[pattern] = grant
            self._hosts.add(rule.host)
        _toggle(grant, rule)
        self._size += 1
        return True

    def remove(self, rule: Rule) -> bool:
        """Remove a rule; return False if it is not there."""
        if rule not in self:
            return False
        pattern, client = rule.pattern, (rule.principal, rule.host)
        by_client = self._patterns[pattern]
        grant = by_client[client]
        _toggle(grant, rule)
        self._size -= 1
        if not grant.allowed and not grant.denied:
            del by_client[client]
            key = (pattern.resource_type, client)
            del self._clients[key][pattern]
            if not self._clients[key]:
                del self._clients[key]
            self._hosts.remove(rule.host)
            if not by_client:
                del self._patterns[pattern]
                self._count_prefix(pattern, -1)
        return True

    def _count_prefix(self, pattern: Pattern, change: int) -> None:
        if pattern.pattern_type is not PatternType.PREFIXED:
            return
        lengths = self._prefix_lengths.get(pattern.resource_type, {})
        length = len(pattern.name)
        count = lengths.get(length, 0) + change
        if length in lengths and count:
            lengths[length] = count
        else:
            kept = {one: uses for one, uses in lengths.items() if one != length}
            kept |= {length: count} if count else {}
            self._prefix_lengths[pattern.resource_type] = dict(sorted(kept.items(), reverse=True))

    # ---- decisions

    def decide(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> Decision:
        """Whether a client may do something with one resource, and which rule decides."""
        clients = self._clients_of(principal, host)
        denying, allowing = _DENYING[operation], _ALLOWING[operation]
        allows: tuple[Pattern, list[tuple[_Client, int]]] | None = None
        found_any = False
        for pattern, by_client in self._covering(resource_type, name):
            found_any = True
            denied, allowed = [], []
            for client in clients:
                grant = by_client.get(client)
                if grant is not None:
                    if grant.denied & denying:
                        denied.append((client, grant.denied & denying))
                    elif grant.allowed & allowing:
                        allowed.append((client, grant.allowed & allowing))
            if denied:
                return Decision(False, _rules(pattern, denied, PermissionType.DENY)[0])
            if allowed:
                allows = pattern, allowed
        if allows is not None:
            return Decision(True, _rules(*allows, PermissionType.ALLOW)[-1])
        return DENIED if found_any else self._without_rules

    def decide_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Decision:
        """Whether a client may do something with at least one resource of a type (KIP-679).

        A resource that is allowed counts unless rules deny all that is allowed. Operations that
        imply this one do not count (Kafka's `Authorizer.authorizeByResourceType`).
        """
        bits = _DENYING[operation]
        allowed: list[tuple[Pattern, _Client, int]] = []
        denied: set[Pattern] = set()
        for client in self._clients_of(principal, host):
            for pattern, grant in self._clients.get((resource_type, client), {}).items():
                if grant.denied & bits:
                    denied.add(pattern)
                if grant.allowed & bits:
                    allowed.append((pattern, client, grant.allowed & bits))
        everything = Pattern(resource_type, WILDCARD)
        if everything in denied:
            return DENIED
        prefixes = {one.name for one in denied if one.pattern_type is PatternType.PREFIXED}
        lengths = {len(prefix) for prefix in prefixes}
        allowed.sort(key=lambda one: one[0] != everything)
        for pattern, client, grants in allowed:
            dominated = pattern != everything and (
                any(pattern.name[:length] in prefixes for length in lengths)
                or (pattern in denied and pattern.pattern_type is PatternType.LITERAL)
            )
            if not dominated:
                rule = _rules(pattern, [(client, grants)], PermissionType.ALLOW)[-1]
                return Decision(True, rule)
        return DENIED

    def _clients_of(self, principal: str, host: str) -> list[_Client]:
        hosts = self._hosts.matching(host)
        principals = dict.fromkeys((principal, WILDCARD_PRINCIPAL))
        return [(one, pattern) for one in principals for pattern in hosts]

    def _covering(
        self, resource_type: ResourceType, name: str
    ) -> Iterator[tuple[Pattern, dict[_Client, _Grant]]]:
        """Yield the patterns that cover a resource, in Kafka's order."""
        patterns = self._patterns
        pattern = Pattern(resource_type, name)
        if (found := patterns.get(pattern)) is not None:
            yield pattern, found
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                pattern = Pattern(resource_type, name[:length], PatternType.PREFIXED)
                if (found := patterns.get(pattern)) is not None:
                    yield pattern, found
        if name != WILDCARD:
            pattern = Pattern(resource_type, WILDCARD)
            if (found := patterns.get(pattern)) is not None:
                yield pattern, found


def _bits_of(grant: _Grant, rule: Rule) -> int:
    return grant.denied if rule.permission_type is PermissionType.DENY else grant.allowed


def _toggle(grant: _Grant, rule: Rule) -> None:
    bit = 1 << rule.operation
    if rule.permission_type is PermissionType.DENY:
        grant.denied ^= bit
    else:
        grant.allowed ^= bit


def _rules(
    pattern: Pattern, found: list[tuple[_Client, int]], permission: PermissionType
) -> list[Rule]:
    """The rules that the bits stand for, in Kafka's order: by operation, principal and host."""
    return sorted(
        (
            Rule(*pattern, principal, host, operation, permission)
            for (principal, host), bits in found
            for operation in Operation
            if bits >> operation & 1
        ),
        key=lambda rule: (rule.operation, rule.principal, rule.host),
    )
