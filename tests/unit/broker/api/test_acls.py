"""The APIs of access rules over the wire: there is no authorizer, as in Kafka without one."""

from typing import Any

import pytest

from broker.api.create_acls import CreateAclsHandler
from broker.api.delete_acls import DeleteAclsHandler
from broker.api.describe_acls import API, DescribeAclsHandler
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from tests.support.api_calls import call, context, over_the_wire

ANY = 1
DISABLED = ErrorCode.SECURITY_DISABLED
PATTERN: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
every_version = pytest.mark.parametrize("version", range(API.versions[0], API.versions[1] + 1))


@every_version
def test_nobody_has_rules_to_describe(version: int) -> None:
    key, handler = ApiKey.DESCRIBE_ACLS, DescribeAclsHandler()
    response = call(handler, key, version, DescribeAclsRequest(**PATTERN))
    assert (response.error_code, response.resources) == (DISABLED, [])
    assert response.error_message == "No Authorizer is configured on the broker"
    error = handler.error_response(context(key, version), None, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert over_the_wire(key, version, error).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@every_version
@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_new_rule_is_refused(version: int, count: int) -> None:
    rule = AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    request = CreateAclsRequest(creations=[rule] * count)
    response = call(CreateAclsHandler(), ApiKey.CREATE_ACLS, version, request)
    refused = (DISABLED, "No Authorizer is configured.")
    assert [(one.error_code, one.error_message) for one in response.results] == [refused] * count


@every_version
@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_filter_of_a_deletion_is_refused(version: int, count: int) -> None:
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**PATTERN)] * count)
    response = call(DeleteAclsHandler(), ApiKey.DELETE_ACLS, version, request)
    refused = (DISABLED, "No Authorizer is configured.", [])
    results = [
        (one.error_code, one.error_message, one.matching_acls) for one in response.filter_results
    ]
    assert results == [refused] * count
