"""Options of `pykafkalog acls` as rules, filters and actions."""

import argparse
import shlex

import pytest

from protocol.acls.filters import RuleFilter
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType
from tools.__main__ import build_parser
from tools.acls import words
from tools.acls.command import _require_sense
from tools.errors import CommandError

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
TOPIC, GROUP, ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE


def parsed(options: str) -> argparse.Namespace:
    return build_parser().parse_args(["acls", *shlex.split(options)])


def test_a_rule_for_each_resource_principal_and_operation() -> None:
    made = words.rules(
        parsed("--add --allow alice Group:a --deny bob --operation read Describe --topic t u")
    )
    assert set(made) == {
        Rule(TOPIC, topic, LITERAL, principal, "*", operation, permission)
        for topic in ("t", "u")
        for principal, permission in (
            ("User:alice", ALLOW),
            ("Group:a", ALLOW),
            ("User:bob", DENY),
        )
        for operation in (READ, DESCRIBE)
    }
    assert made == sorted(made)


def test_a_prefix_and_a_host_and_the_cluster_which_is_no_prefix() -> None:
    assert words.rules(
        parsed(
            "--add --allow '*' --operation describe --topic web- --cluster --prefixed"
            " --host 10.0.0.0/8"
        )
    ) == [
        Rule(TOPIC, "web-", PREFIXED, "User:*", "10.0.0.0/8", DESCRIBE, ALLOW),
        Rule(
            ResourceType.CLUSTER,
            "kafka-cluster",
            LITERAL,
            "User:*",
            "10.0.0.0/8",
            DESCRIBE,
            ALLOW,
        ),
    ]


@pytest.mark.parametrize(
    ("options", "granted"),
    [
        (
            "--producer --topic t --transactional-id i",
            {(TOPIC, WRITE), (TOPIC, DESCRIBE), (TOPIC, Operation.CREATE)}
            | {(ID, WRITE), (ID, DESCRIBE)},
        ),
        ("--consumer --topic t --group g", {(TOPIC, READ), (TOPIC, DESCRIBE), (GROUP, READ)}),
        (
            "--producer --consumer --topic t",
            {(TOPIC, one) for one in (READ, WRITE, DESCRIBE, Operation.CREATE)},
        ),
        (
            "--user-principal u --operation create-tokens",
            {(ResourceType.USER, Operation.CREATE_TOKENS)},
        ),
        ("--delegation-token d --operation all", {(ResourceType.DELEGATION_TOKEN, Operation.ALL)}),
    ],
)
def test_what_producers_and_consumers_need(
    options: str, granted: set[tuple[ResourceType, Operation]]
) -> None:
    made = words.rules(parsed(f"--add --allow a {options}"))
    assert {(rule.resource_type, rule.operation) for rule in made} == granted


def test_users_are_principals() -> None:
    args = parsed("--add --allow a --user-principal u --operation describe-tokens")
    assert [rule.resource_name for rule in words.rules(args)] == ["User:u"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--topic t --operation read", "needs --allow PRINCIPAL or --deny"),
        ("--allow a --operation read", "needs a resource"),
        ("--allow a --topic t", "needs --operation OP, --producer or --consumer"),
        ("--allow a --topic t --operation reed", "there is no operation reed; there are all, read"),
        ("--allow a --topic t --operation any", "there is no operation any"),
        ("--allow a --group g --operation write", "nobody asks for write of a group"),
        ("--allow a --group g --producer", "--producer needs nothing of"),
        ("--allow a --transactional-id i --consumer", "--consumer needs nothing of"),
    ],
)  # fmt: skip
def test_what_cannot_be_added(options: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        words.rules(parsed(f"--add {options}"))


ANY, MATCH = PatternType.ANY, PatternType.MATCH


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ("", [RuleFilter()]),
        ("--principal alice", [RuleFilter(principal="User:alice")]),
        ("--host 10.0.0.1", [RuleFilter(host="10.0.0.1")]),
        ("--topic t", [RuleFilter(TOPIC, "t", MATCH)]),
        ("--topic t --literal", [RuleFilter(TOPIC, "t", LITERAL)]),
        ("--topic t --prefixed", [RuleFilter(TOPIC, "t", PREFIXED)]),
        ("--prefixed", [RuleFilter(pattern_type=PREFIXED)]),
        ("--remove --topic t", [RuleFilter(TOPIC, "t", LITERAL)]),
        ("--remove --topic t --prefixed", [RuleFilter(TOPIC, "t", PREFIXED)]),
        ("--remove --principal alice", [RuleFilter(principal="User:alice")]),
        (
            "--topic t --group g --operation read",
            [
                RuleFilter(TOPIC, "t", MATCH, operation=READ),
                RuleFilter(GROUP, "g", MATCH, operation=READ),
            ],
        ),
        (
            "--operation read write",
            [RuleFilter(operation=READ), RuleFilter(operation=WRITE)],
        ),
    ],
)
def test_filters(options: str, chosen: list[RuleFilter]) -> None:
    assert words.filters(parsed(options)) == chosen


def test_actions() -> None:
    args = parsed("--explain --principal alice --operation write --topic t --host 10.0.0.1")
    assert words.action(args) == words.Action("User:alice", "10.0.0.1", WRITE, TOPIC, "t")
    args = parsed("--explain --principal alice --operation alter --cluster")
    told = words.action(args)
    assert (told.host, told.name) == ("127.0.0.1", "kafka-cluster")
    for options in (
        "--operation write --topic t",
        "--principal a --topic t",
        "--principal a --operation write",
        "--principal a --operation write read --topic t",
        "--principal a --operation write --topic t u",
    ):
        with pytest.raises(CommandError, match="--explain needs"):
            words.action(parsed(f"--explain {options}"))
    with pytest.raises(CommandError, match="nobody asks for write of a group"):
        words.action(parsed("--explain --principal a --operation write --group g"))


@pytest.mark.parametrize(
    "options",
    [
        "--allow a --topic t",
        "--remove --deny a",
        "--topic t --dry-run",
        "--remove --producer --topic t",
        "--explain --consumer --topic t",
        "--add --principal a --topic t --operation read",
    ],
)
def test_options_that_do_not_go_together(options: str) -> None:
    with pytest.raises(CommandError, match=r"go(es)? with|takes --allow"):
        _require_sense(parsed(options))
