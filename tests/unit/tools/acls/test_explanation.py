"""Which rule decides, and why not the others."""

import json

import pytest

from protocol.acls.index import Ground
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType
from tests.support.acl_stores import DENY, PREFIXED, allow
from tools.acls.explanation import Verdict, explain
from tools.acls.listing import show_explanation, show_rules
from tools.acls.rules import Defaults
from tools.acls.words import Action

TOPIC = ResourceType.TOPIC
READ, WRITE, ALL = Operation.READ, Operation.WRITE, Operation.ALL
TOLD = Defaults(frozenset({"User:root"}), False)
ACTION = Action("User:alice", "10.0.0.1", Operation.DESCRIBE, TOPIC, "orders")


def by(
    operation: Operation,
    name: str = "orders",
    principal: str = "User:alice",
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
    permission: PermissionType = PermissionType.ALLOW,
) -> Rule:
    return allow(
        TOPIC, operation, name, pattern, principal=principal, host=host, permission=permission
    )


def test_each_rule_has_its_verdict() -> None:
    verdicts = {
        by(ALL, "or", pattern=PREFIXED, permission=DENY): Verdict.DECIDES,
        by(ALL, "o", pattern=PREFIXED, permission=DENY): Verdict.AGREES,
        by(READ): Verdict.OUTWEIGHED,
        by(Operation.DESCRIBE_CONFIGS): Verdict.OTHER_OPERATION,
        by(ALL, host="10.0.0.2"): Verdict.OTHER_HOST,
        by(ALL, host="10.0.0.2/31", permission=DENY): Verdict.OTHER_HOST,
        by(ALL, principal="User:bob"): Verdict.OTHER_PRINCIPAL,
    }
    told = explain(verdicts, ACTION, TOLD)
    assert not told.decision.allowed
    assert told.sure
    assert dict(told.verdicts) == verdicts
    assert [verdict for _, verdict in told.verdicts] == sorted(
        verdicts.values(), key=list(Verdict).index
    )


def test_a_range_and_everybody_apply() -> None:
    rule = by(READ, principal="User:*", host="10.0.0.0/8")
    told = explain([rule], ACTION, TOLD)
    assert told.decision == (True, rule)
    assert told.verdicts == ((rule, Verdict.DECIDES),)


@pytest.mark.parametrize(
    ("defaults", "rules", "ground", "sure"),
    [
        (TOLD, [], Ground.DEFAULT_DENY, True),
        (Defaults(frozenset(), True), [], Ground.DEFAULT_ALLOW, True),
        (Defaults(frozenset(), True), [by(WRITE, principal="User:bob")], Ground.DEFAULT_DENY, True),
        (Defaults(frozenset(), None), [], Ground.DEFAULT_DENY, False),
        (Defaults(frozenset(), None), [by(WRITE, principal="User:b")], Ground.DEFAULT_DENY, True),
        (Defaults(None, False), [], Ground.DEFAULT_DENY, False),
        (Defaults(frozenset({"User:alice"}), False), [], Ground.SUPER_USER, True),
    ],
)
def test_without_a_rule(defaults: Defaults, rules: list[Rule], ground: Ground, sure: bool) -> None:
    told = explain(rules, ACTION, defaults)
    assert told.decision.because is ground
    assert told.sure is sure


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rules = [by(WRITE), by(ALL, permission=DENY, principal="User:bob")]
    show_explanation(ACTION, explain(rules, ACTION, TOLD), as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "User:alice from 10.0.0.1 may describe topic orders"
    assert lines[3].split()[:5] == ["decides", "topic", "orders", "literal", "allow"]
    assert lines[4].split()[:2] == ["other", "principal"]
    show_explanation(ACTION, explain([], ACTION, Defaults(None, None)), as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "User:alice from 10.0.0.1 may not describe topic orders",
        "no rule allows it",
        "The broker does not tell its settings: super users may do everything.",
    ]
    show_explanation(ACTION, explain(rules, ACTION, TOLD), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["allowed"] is True
    assert told["because"]["operation"] == "WRITE"
    assert [one["verdict"] for one in told["rules"]] == ["decides", "other principal"]
    show_rules([], as_json=False, nothing="None.")
    assert capsys.readouterr().out == "None.\n"
    show_rules(rules[:1], as_json=True, nothing="")
    assert json.loads(capsys.readouterr().out) == [
        {
            "resource_type": "TOPIC",
            "resource_name": "orders",
            "pattern_type": "LITERAL",
            "principal": "User:alice",
            "host": "*",
            "operation": "WRITE",
            "permission_type": "ALLOW",
        }
    ]
