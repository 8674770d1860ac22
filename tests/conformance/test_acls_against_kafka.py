"""Access rules beside Kafka's own classes.

The index decides as StandardAuthorizer does, for the same reason; the audit log has its lines; and
the nodes in the metadata tree are what Kafka 3.9 reads and writes.
"""

from pathlib import Path
from random import Random

import pytest

from broker.cluster.acl_nodes import decode_rules, encode_rules
from broker.registry import APIS
from broker.security.audit import audit_line
from protocol.acls.filters import RuleFilter
from protocol.acls.index import Decision, Ground, RuleIndex
from protocol.acls.rules import WILDCARD, WILDCARD_PRINCIPAL, Pattern, Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType
from tests.support.access_rules import HOSTS, NAMES, OPERATIONS, PRINCIPALS, TYPES
from tests.support.kafka_jars import java

pytestmark = pytest.mark.conformance

ORACLE = Path(__file__).with_name("AuthorizerOracle.java")
NODES = Path(__file__).with_name("AclNodeOracle.java")
SUPER_USER = "User:root"
ROUNDS = 300


def drawn_rules(rng: Random, count: int) -> list[Rule]:
    rules = [
        Rule(
            rng.choice(TYPES),
            rng.choice((*NAMES, WILDCARD)),
            rng.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            rng.choice((*PRINCIPALS, WILDCARD_PRINCIPAL)),
            rng.choice((*HOSTS, WILDCARD, "10.0.0.0/8", "10.0.0.2/31", "192.168.0.0/16", "::/64")),
            rng.choice(OPERATIONS),
            rng.choice((PermissionType.DENY, PermissionType.ALLOW, PermissionType.ALLOW)),
        )
        for _ in range(count)
    ]
    return list(dict.fromkeys(rules))


def drawn_action(rng: Random, rules: list[Rule]) -> tuple[str, str, Operation, ResourceType, str]:
    """Mostly one that a rule is about, or nearly."""
    action = [
        rng.choice((*PRINCIPALS, *PRINCIPALS, SUPER_USER)),
        rng.choice(HOSTS),
        rng.choice(OPERATIONS[1:]),
        rng.choice(TYPES),
        rng.choice(NAMES),
    ]
    if rules and rng.random() < 0.8:
        rule = rng.choice(rules)
        action[3] = rule.resource_type
        if rule.principal != WILDCARD_PRINCIPAL:
            action[0] = rule.principal
        if rule.host in HOSTS:
            action[1] = rule.host
        if rule.operation is not Operation.ALL and rng.random() < 0.7:
            action[2] = rule.operation
        if rule.resource_name != WILDCARD:
            action[4] = rule.resource_name + rng.choice(("", "", "c", "-eu"))
    return tuple(action)  # type: ignore[return-value]


def words(*fields: object) -> str:
    """A line for the oracle."""
    return "\t".join(
        one.name
        if isinstance(one, ResourceType | PatternType | Operation | PermissionType)
        else ""
        if one is None
        else str(one)
        for one in fields
    )


def test_s_acl_2_decisions_and_the_lines_of_the_audit_log() -> None:
    rng = Random(1)
    asked: list[str] = []
    expected: list[str] = []
    for _ in range(ROUNDS):
        allow_if_none = rng.random() < 0.3
        rules = drawn_rules(rng, rng.randrange(60))
        index = RuleIndex(rules, allow_if_none=allow_if_none)
        asked.append(words("begin", SUPER_USER, str(allow_if_none).lower()))
        asked += [words("rule", *rule) for rule in rules]
        for _ in range(40):
            principal, host, operation, kind, name = drawn_action(rng, rules)
            key, count = rng.choice(list(APIS)), rng.randrange(1, 5)
            asked.append(words("ask", principal, host, operation, kind, name, int(key), count))
            decision = (
                Decision(True, Ground.SUPER_USER)
                if principal == SUPER_USER
                else index.decide(principal, host, operation, kind, name)
            )
            said = "ALLOWED" if decision.allowed else "DENIED"
            line = audit_line(principal, host, operation, kind, name, key, count, decision)
            expected.append(f"{said}\t{line}")
    found = java(str(ORACLE), stdin="\n".join(asked)).stdout.splitlines()
    assert len(found) == ROUNDS * 40
    for question, theirs, ours in zip(
        [line for line in asked if line.startswith("ask")], found, expected, strict=True
    ):
        assert theirs == ours, question
    assert {line.partition("\t")[0] for line in found} == {"ALLOWED", "DENIED"}
    assert sum("MatchingAcl" in line for line in found) > len(found) // 10


def test_s_acl_5_any_resource_of_a_type() -> None:
    rng = Random(2)
    asked: list[str] = []
    expected: list[str] = []
    for _ in range(ROUNDS):
        rules = drawn_rules(rng, rng.randrange(8))
        index = RuleIndex(rules)
        asked.append(words("begin", SUPER_USER, "false"))
        asked += [words("rule", *rule) for rule in rules]
        for _ in range(10):
            action = rng.choice(PRINCIPALS), rng.choice(HOSTS), rng.choice(OPERATIONS[1:])
            kind = rng.choice(TYPES)
            asked.append(words("any", *action, kind))
            one = index.decide(*action, kind, "hardcode").allowed
            allowed = one or index.decide_any(*action, kind).allowed
            expected.append("ALLOWED" if allowed else "DENIED")
    found = java(str(ORACLE), stdin="\n".join(asked)).stdout.splitlines()
    assert found == expected
    assert set(found) == {"ALLOWED", "DENIED"}


def test_s_acl_6_filters_select_the_same_rules() -> None:
    rng = Random(3)
    rules = drawn_rules(rng, 300)
    asked = [words("begin", SUPER_USER, "false"), *(words("rule", *rule) for rule in rules)]
    filters = [
        RuleFilter(
            rng.choice((ResourceType.ANY, *TYPES)),
            rng.choice((None, *NAMES, WILDCARD)),
            rng.choice([one for one in PatternType if one]),
            rng.choice((None, None, *PRINCIPALS, WILDCARD_PRINCIPAL)),
            rng.choice((None, None, *HOSTS, WILDCARD)),
            rng.choice((Operation.ANY, Operation.ANY, *OPERATIONS)),
            rng.choice([one for one in PermissionType if one]),
        )
        for _ in range(300)
    ]
    asked += [words("filter", *chosen) for chosen in filters]
    found = java(str(ORACLE), stdin="\n".join(asked)).stdout.split("\n")[: len(filters)]
    for chosen, line in zip(filters, found, strict=True):
        ours = sorted(str(rule) for rule in rules if chosen.fits(rule))
        assert sorted(filter(None, line.split("\t"))) == ours, chosen
    assert sum(map(bool, found)) > 30


def test_s_acl_9_nodes_of_the_metadata_tree_are_those_of_kafka_3_9() -> None:
    rng = Random(4)
    pattern = Pattern(ResourceType.TOPIC, "orders")
    rules = {
        Rule(*pattern, *rest[3:])
        for rest in drawn_rules(rng, 60)
        if rest.operation is not Operation.TWO_PHASE_COMMIT and "/" not in rest.host
    }
    written = encode_rules(rules)
    result = java(str(NODES), stdin=written.decode(), version="3.9.0").stdout
    read, _, theirs = result.partition("\n")
    assert sorted(read.split("\t")) == sorted(
        f"{rule.principal} {rule.host} {rule.operation.name} {rule.permission_type.name}"
        for rule in rules
    )
    assert decode_rules(pattern, theirs.strip().encode()) == rules
