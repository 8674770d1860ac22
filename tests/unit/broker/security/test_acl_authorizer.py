"""The authorizer's decisions: super users, remembered decisions, the audit log."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broker.request import RequestContext
from broker.resource_configs.log_levels import TRACE
from broker.security.acl_authorizer import (
    LONGEST_REMEMBERED,
    MOST_REMEMBERED,
    AclAuthorizer,
    AuthorizerStatistics,
)
from broker.security.audit import AUDIT, LONGEST_NAME, ONLY_LOOKED_AT
from broker.security.authorized_operations import (
    EVERYTHING,
    authorized_operations,
    bit_field,
)
from protocol.acls.filters import RuleFilter
from protocol.acls.vocabulary import Operation, PermissionType, ResourceType
from protocol.api_keys import ApiKey
from storage.waits import at_once
from tests.support.acl_stores import DENY, PREFIXED, Rules, allow, open_rules
from tests.support.api_calls import CONNECTION, context

PAGE = Path(__file__).parents[4] / "docs" / "security.md"

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE


def by(principal: str = "User:alice", host: str = "10.0.0.1") -> RequestContext:
    connection = replace(CONNECTION, principal=principal, peer_host=host)
    return context(ApiKey.PRODUCE, 9, connection=connection)


@pytest.fixture
def rules() -> Iterator[Rules]:
    AUDIT.setLevel(TRACE)
    yield at_once(
        open_rules(
            allow(TOPIC, READ, "t", principal="User:alice"),
            allow(TOPIC, WRITE, "w-", PREFIXED, principal="User:alice", host="10.0.0.1"),
            super_users=("User:root", "User:CN=broker,O=us"),
        )
    )
    AUDIT.setLevel(logging.NOTSET)


def test_s_acl_2_rules_are_about_principals_and_addresses(rules: Rules) -> None:
    allowed = rules.authorizer
    assert allowed(by(), READ, TOPIC, "t")
    assert allowed(by(), DESCRIBE, TOPIC, "t")
    assert not allowed(by(), READ, TOPIC, "u")
    assert not allowed(by("User:bob"), READ, TOPIC, "t")
    assert allowed(by(), WRITE, TOPIC, "w-1")
    assert not allowed(by(host="10.0.0.2"), WRITE, TOPIC, "w-1")
    assert allowed.statistics() == AuthorizerStatistics(rules=2, allowed=3, denied=3)


def test_super_users_may_do_everything_even_what_is_denied(rules: Rules) -> None:
    at_once(rules.acls.create([allow(TOPIC, READ, "*", principal="User:*", permission=DENY)]))
    assert rules.authorizer(by("User:root"), READ, TOPIC, "t")
    assert rules.authorizer(by("User:CN=broker,O=us"), Operation.ALTER, CLUSTER, "kafka-cluster")
    assert not rules.authorizer(by(), READ, TOPIC, "t")
    assert not rules.authorizer(by("User:roo"), READ, TOPIC, "t")


def test_a_change_of_rules_counts_for_what_was_asked_before(rules: Rules) -> None:
    allowed = rules.authorizer
    assert not allowed(by(), READ, GROUP, "g")
    assert not allowed.of_any(by(), READ, GROUP)
    rule = allow(GROUP, READ, "g", principal="User:*")
    at_once(rules.acls.create([rule]))
    assert allowed(by(), READ, GROUP, "g")
    assert allowed.of_any(by(), READ, GROUP)
    at_once(rules.acls.delete([RuleFilter(GROUP)]))
    assert not allowed(by(), READ, GROUP, "g")
    assert not allowed.of_any(by(), READ, GROUP)


def test_s_acl_5_any_topic_will_do(rules: Rules) -> None:
    assert rules.authorizer.of_any(by(), WRITE, TOPIC)
    assert not rules.authorizer.of_any(by(host="10.0.0.2"), WRITE, TOPIC)
    assert rules.authorizer.of_any(by("User:root"), WRITE, TOPIC)


def test_what_is_remembered_is_bounded_whatever_clients_ask(rules: Rules) -> None:
    allowed: AclAuthorizer = rules.authorizer
    assert not allowed(by(), READ, GROUP, "g" * (LONGEST_REMEMBERED + 1))
    assert not allowed._known
    assert not allowed(by(), READ, GROUP, "g" * LONGEST_REMEMBERED)
    assert len(allowed._known) == 1
    for number in range(MOST_REMEMBERED + 10):
        allowed.quietly(by(), READ, GROUP, f"g{number}")
    assert len(allowed._known) <= MOST_REMEMBERED
    assert allowed(by(), READ, TOPIC, "t")


def test_the_level_of_what_is_only_looked_at_can_be_set_by_clients() -> None:
    assert ONLY_LOOKED_AT == TRACE
    assert logging.getLevelName(TRACE) == "TRACE"


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [
        (logging.getLevelName(one.levelno), one.getMessage())
        for one in caplog.records
        if one.name == "kafka.authorizer.logger"
    ]
    caplog.clear()
    return found


def test_the_line_in_the_page_is_the_one_that_is_logged(
    rules: Rules, caplog: pytest.LogCaptureFixture
) -> None:
    denied = allow(
        TOPIC, Operation.ALL, "*", principal="User:mallory", host="10.0.0.0/8", permission=DENY
    )
    at_once(rules.acls.create([denied]))
    rules.authorizer(by("User:mallory", "10.0.0.7"), WRITE, TOPIC, "orders")
    [(_, line)] = lines(caplog)
    assert line in PAGE.read_text().splitlines()


def test_s_acl_8_denials_are_info_what_is_allowed_debug_and_looks_trace(
    rules: Rules, caplog: pytest.LogCaptureFixture
) -> None:
    allowed = rules.authorizer
    allowed(by(), READ, TOPIC, "t", 3)
    allowed(by("User:bob"), READ, TOPIC, "t")
    assert lines(caplog) == [
        (
            "DEBUG",
            "Principal = User:alice is Allowed operation = READ from host = 10.0.0.1 on resource = "
            "Topic:LITERAL:t for request = Produce with resourceRefCount = 3 based on rule "
            "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=t, patternType=LITERAL, "
            "principal=User:alice, host=*, operation=READ, permissionType=ALLOW])",
        ),
        (
            "INFO",
            "Principal = User:bob is Denied operation = READ from host = 10.0.0.1 on resource = "
            "Topic:LITERAL:t for request = Produce with resourceRefCount = 1 based on rule "
            "DefaultDeny",
        ),
    ]
    allowed.quietly(by(), READ, TOPIC, "t")
    allowed.quietly(by("User:bob"), READ, TOPIC, "t")
    assert [level for level, _ in lines(caplog)] == ["DEBUG", "TRACE"]
    allowed.of_any(by(), WRITE, TOPIC)
    ((level, line),) = lines(caplog)
    assert level == "TRACE"
    assert "Topic:LITERAL:hardcode" in line
    assert "resourceRefCount = 0" in line
    allowed.operations(by(), TOPIC, "t")
    assert {level for level, _ in lines(caplog)} == {"TRACE"}
    assert allowed(by("User:root"), READ, TOPIC, "t")
    assert lines(caplog)[0][1].endswith("based on rule SuperUser")


def test_the_audit_log_is_as_quiet_as_its_level(
    rules: Rules, caplog: pytest.LogCaptureFixture
) -> None:
    for level, seen in ((logging.DEBUG, 2), (logging.INFO, 1), (logging.WARNING, 0)):
        AUDIT.setLevel(level)
        rules.authorizer(by(), READ, TOPIC, "t")
        rules.authorizer(by("User:bob"), READ, TOPIC, "t")
        rules.authorizer.quietly(by("User:bob"), READ, TOPIC, "t")
        rules.authorizer.operations(by(), TOPIC, "t")
        assert len(lines(caplog)) == seen


def test_a_name_makes_no_line_of_its_own_and_no_long_one(
    rules: Rules, caplog: pytest.LogCaptureFixture
) -> None:
    rules.authorizer(by("User:a\nPrincipal = b"), READ, GROUP, "g\x1b[2J\r\n" + "x" * 30_000)
    ((_, line),) = lines(caplog)
    assert line.isprintable()
    assert "User:a\\nPrincipal" in line
    assert "g\\x1b[2J\\r\\nxxx" in line
    assert len(line) < LONGEST_NAME + 400
    rules.authorizer(by("User:ä"), READ, GROUP, "größe")
    assert "User:ä" in caplog.text
    assert "größe" in caplog.text


def test_s_acl_10_operations_are_those_that_are_allowed(rules: Rules) -> None:
    ctx = by()
    assert authorized_operations(rules.authorizer, ctx, TOPIC, "t") == bit_field((READ, DESCRIBE))
    assert authorized_operations(rules.authorizer, ctx, TOPIC, "u") == 0
    everything = authorized_operations(rules.authorizer, by("User:root"), TOPIC, "t")
    assert everything == EVERYTHING[TOPIC] == authorized_operations(None, ctx, TOPIC, "t")
    denied = allow(TOPIC, READ, "t", principal="User:*", permission=PermissionType.DENY)
    at_once(rules.acls.create([denied]))
    assert authorized_operations(rules.authorizer, ctx, TOPIC, "t") == bit_field((DESCRIBE,))
