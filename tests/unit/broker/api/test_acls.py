"""The APIs of access rules over the wire, with an authorizer and without one."""

from typing import Any

import pytest

from broker.api.create_acls import CreateAclsHandler
from broker.api.delete_acls import DeleteAclsHandler
from broker.api.describe_acls import API, DescribeAclsHandler
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from storage.waits import at_once
from tests.support.acl_stores import PREFIXED, Rules, allow, open_rules
from tests.support.api_calls import call

ANY = 1
DISABLED = ErrorCode.SECURITY_DISABLED
INVALID = ErrorCode.INVALID_REQUEST
PATTERN: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
RULE: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "t",
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
every_version = pytest.mark.parametrize("version", range(API.versions[0], API.versions[1] + 1))

T, U = (allow(ResourceType.TOPIC, Operation.READ, name) for name in ("t", "u"))
WRITE_T = T._replace(
    operation=Operation.WRITE, permission_type=PermissionType.DENY, host="10.0.0.1"
)
PREFIX = allow(ResourceType.TOPIC, Operation.READ, "t", PREFIXED, principal="User:alice")
EVERY_GROUP = allow(ResourceType.GROUP, Operation.ALL, "*")
SOME = (T, U, WRITE_T, PREFIX, EVERY_GROUP)


@pytest.fixture
def rules() -> Rules:
    return at_once(open_rules(*SOME))


def described(rules: Rules, version: int = 3, **chosen: Any) -> list[Rule]:
    request = DescribeAclsRequest(**PATTERN | chosen)
    answer = call(DescribeAclsHandler(rules.acls), ApiKey.DESCRIBE_ACLS, version, request)
    assert answer.error_code == ErrorCode.NONE
    assert len({(r.resource_type, r.resource_name, r.pattern_type) for r in answer.resources}) == (
        len(answer.resources)
    )
    return [
        Rule(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            acl.principal,
            acl.host,
            Operation(acl.operation),
            PermissionType(acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


def created(acls: Any, *changes: dict[str, Any], version: int = 3) -> Any:
    """The answer to a request for rules like `RULE`, each with changes."""
    request = CreateAclsRequest(creations=[AclCreation(**RULE | changed) for changed in changes])
    return call(CreateAclsHandler(acls), ApiKey.CREATE_ACLS, version, request)


def deleted(acls: Any, *chosen: dict[str, Any], version: int = 3) -> Any:
    """The answer to a deletion by filters like `PATTERN`, each with changes."""
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**PATTERN | one) for one in chosen])
    return call(DeleteAclsHandler(acls), ApiKey.DELETE_ACLS, version, request)


@every_version
def test_without_an_authorizer_nobody_has_rules_to_describe(version: int) -> None:
    key, handler = ApiKey.DESCRIBE_ACLS, DescribeAclsHandler(None)
    response = call(handler, key, version, DescribeAclsRequest(**PATTERN))
    assert (response.error_code, response.resources) == (DISABLED, [])
    assert response.error_message == "No Authorizer is configured on the broker"


@every_version
@pytest.mark.parametrize("count", [0, 1, 3])
def test_without_an_authorizer_each_new_rule_is_refused(version: int, count: int) -> None:
    response = created(None, *[{}] * count, version=version)
    refused = (DISABLED, "No Authorizer is configured.")
    assert [(one.error_code, one.error_message) for one in response.results] == [refused] * count


@every_version
@pytest.mark.parametrize("count", [0, 1, 3])
def test_without_an_authorizer_each_filter_of_a_deletion_is_refused(
    version: int, count: int
) -> None:
    response = deleted(None, *[{}] * count, version=version)
    refused = (DISABLED, "No Authorizer is configured.", [])
    results = [
        (one.error_code, one.error_message, one.matching_acls) for one in response.filter_results
    ]
    assert results == [refused] * count


@every_version
def test_s_acl_6_what_filters_select(rules: Rules, version: int) -> None:
    def found(**chosen: Any) -> set[Rule]:
        return set(described(rules, version, **chosen))

    assert found() == set(SOME)
    assert found(resource_type_filter=3) == {EVERY_GROUP}
    assert found(resource_name_filter="t") == {T, WRITE_T, PREFIX}
    assert found(resource_name_filter="t", pattern_type_filter=3) == {T, WRITE_T}
    assert found(resource_name_filter="tt", pattern_type_filter=2) == {PREFIX, EVERY_GROUP}
    assert found(principal_filter="User:alice") == {PREFIX}
    assert found(host_filter="10.0.0.1") == {WRITE_T}
    assert found(operation=2) == {EVERY_GROUP}
    assert found(permission_type=2) == {WRITE_T}
    assert found(resource_name_filter="nobody's") == set()


def test_many_rules_of_many_patterns_are_described(rules: Rules) -> None:
    many = [allow(ResourceType.TOPIC, Operation.READ, f"t{n}") for n in range(700)]
    same = [T._replace(principal=f"User:{n}") for n in range(700)]
    at_once(rules.acls.create([*many, *same]))
    assert sorted(described(rules)) == sorted([*SOME, *many, *same])


@pytest.mark.parametrize(
    "odd",
    ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"],
)
@pytest.mark.parametrize("code", [0, 99, -1])
def test_a_filter_with_a_code_that_nobody_knows_selects_nothing(
    rules: Rules, odd: str, code: int
) -> None:
    request = DescribeAclsRequest(**PATTERN | {odd: code})
    answer = call(DescribeAclsHandler(rules.acls), ApiKey.DESCRIBE_ACLS, 3, request)
    assert (answer.error_code, answer.resources) == (INVALID, [])
    answer = deleted(rules.acls, {odd: code}, {})
    assert [one.error_code for one in answer.filter_results] == [INVALID, ErrorCode.NONE]
    assert [len(one.matching_acls) for one in answer.filter_results] == [0, len(SOME)]


@every_version
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"resource_type": 4}, "only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_type": 0}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": 77}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 1}, "Invalid patternType ANY"),
        ({"resource_pattern_type": 2}, "Invalid patternType MATCH"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"operation": 0}, "Invalid operation UNKNOWN"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        ({"principal": "alice"}, "Could not parse principal from `alice`"),
        ({"host": ""}, "Host pattern cannot be null or empty"),
        ({"host": "10.0.0.0/33"}, "Invalid CIDR notation '10.0.0.0/33'"),
        ({"host": "::/200"}, "Invalid CIDR notation"),
    ],
)
def test_s_acl_7_rules_that_make_no_sense_are_refused_one_by_one(
    rules: Rules, version: int, changed: dict[str, Any], reason: str
) -> None:
    answer = created(rules.acls, {}, changed, {}, version=version)
    assert [one.error_code for one in answer.results] == [ErrorCode.NONE, INVALID, ErrorCode.NONE]
    assert reason in answer.results[1].error_message
    made = T._replace(principal="User:a")
    assert sorted(described(rules)) == sorted([*SOME, made])


@pytest.mark.parametrize(
    "changed",
    [
        {"resource_type": 4, "resource_name": "kafka-cluster"},
        {"resource_type": 7, "resource_name": "User:bob", "operation": 13},
        {"resource_pattern_type": 4},
        {"host": "10.0.0.7"},
        {"host": "10.0.0.7/8"},
        {"host": "2001:db8::/32"},
        {"host": "a name that matches nobody"},
        {"operation": 15},
        {"principal": "Group:any"},
        {"resource_name": "*"},
    ],
)
def test_s_acl_7_rules_that_may_be_made(rules: Rules, changed: dict[str, Any]) -> None:
    answer = created(rules.acls, changed)
    assert [one.error_code for one in answer.results] == [ErrorCode.NONE]
    assert len(described(rules)) == len(SOME) + 1
    assert created(rules.acls, changed) == answer
    assert len(described(rules)) == len(SOME) + 1


@every_version
def test_s_acl_7_what_was_deleted_is_told_filter_by_filter(rules: Rules, version: int) -> None:
    answer = deleted(
        rules.acls,
        {"resource_name_filter": "t", "pattern_type_filter": 3},
        {"operation": 4},
        {"resource_name_filter": "none"},
        version=version,
    )
    told = [
        sorted((one.resource_name, one.operation, one.host) for one in result.matching_acls)
        for result in answer.filter_results
    ]
    assert told == [[("t", 3, "*"), ("t", 4, "10.0.0.1")], [("t", 4, "10.0.0.1")], []]
    assert all(
        one.error_code == 0 for result in answer.filter_results for one in result.matching_acls
    )
    assert sorted(described(rules)) == sorted([U, PREFIX, EVERY_GROUP])


def test_too_many_at_once_are_refused_for_every_filter(rules: Rules) -> None:
    many = [allow(ResourceType.TOPIC, Operation.READ, f"t{n}") for n in range(6_000)]
    at_once(rules.acls.create(many))
    answer = deleted(rules.acls, {}, {})
    assert [one.error_code for one in answer.filter_results] == [INVALID] * 2
    assert len(rules.acls.index) == 6_000 + len(SOME)
