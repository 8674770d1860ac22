"""Single decisions, in words; tests/property/test_access_rules.py has the law."""

from time import perf_counter

from protocol.acls.index import Decision, Ground, RuleIndex
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType

TOPIC = ResourceType.TOPIC
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
READ, DESCRIBE = Operation.READ, Operation.DESCRIBE


def rule(
    name: str = "t",
    pattern: PatternType = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    operation: Operation = READ,
    permission: PermissionType = ALLOW,
) -> Rule:
    return Rule(TOPIC, name, pattern, principal, host, operation, permission)


def decide(*rules: Rule, operation: Operation = READ, name: str = "t", **options: bool) -> Decision:
    return RuleIndex(rules, **options).decide("User:alice", "10.0.0.1", operation, TOPIC, name)


def test_s_acl_2_a_rule_that_denies_outweighs_every_other() -> None:
    denied = rule("", PREFIXED, "User:*", permission=DENY)
    assert decide(rule(), denied) == (False, denied)
    assert decide(rule(), rule(permission=DENY, operation=Operation.WRITE)) == (True, rule())


def test_s_acl_4_what_is_implied_when_allowed_and_not_when_denied() -> None:
    assert decide(rule(), operation=DESCRIBE) == (True, rule())
    both = rule(), rule(operation=DESCRIBE, host="*"), rule(operation=READ, permission=DENY)
    assert decide(*both, operation=DESCRIBE) == (True, both[1])
    configs = rule(operation=Operation.ALTER_CONFIGS)
    assert decide(configs, operation=Operation.DESCRIBE_CONFIGS).allowed
    assert not decide(configs, operation=DESCRIBE).allowed
    assert not decide(rule(operation=Operation.CREATE), operation=DESCRIBE).allowed
    for implying in (Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.ALL):
        assert decide(rule(operation=implying), operation=DESCRIBE).allowed


def test_s_acl_2_without_rules_about_a_resource_the_default_decides() -> None:
    other = rule("other"), rule("tt", PREFIXED)
    assert decide(*other) == (False, Ground.DEFAULT_DENY)
    assert decide(*other, allow_if_none=True) == (True, Ground.DEFAULT_ALLOW)
    of_bob = rule(principal="User:bob")
    assert decide(of_bob, allow_if_none=True) == (False, Ground.DEFAULT_DENY)


def test_a_literal_star_is_every_resource_and_a_prefixed_one_is_what_begins_with_it() -> None:
    assert decide(rule("*")).allowed
    assert decide(rule("*"), name="*any").allowed
    assert not decide(rule("*", PREFIXED)).allowed
    assert decide(rule("*", PREFIXED), name="*any").allowed
    assert decide(rule("", PREFIXED)).allowed


def test_a_decision_costs_the_same_however_many_rules_there_are() -> None:
    def cost(count: int) -> float:
        index = RuleIndex(
            rule(f"topic-{n}", PREFIXED if n % 2 else LITERAL, f"User:{n}") for n in range(count)
        )
        index.add(rule("topic-", PREFIXED))
        took = []
        for _ in range(20):
            began = perf_counter()
            for n in range(200):
                index.decide("User:alice", "10.0.0.1", READ, TOPIC, f"topic-{n}")
            took.append(perf_counter() - began)
        return min(took)

    assert cost(20_000) < 20 * cost(200)  # it has a hundred times as many
