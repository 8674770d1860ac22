"""Asks a broker for rules of access, and changes them (DescribeAcls, CreateAcls, DeleteAcls)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from protocol.acls.filters import RuleFilter
from protocol.acls.rules import Rule
from protocol.errors import ErrorCode
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from tools.configs.settings import Entity, Kind, describe
from tools.errors import CommandError
from tools.wire.brokers import Brokers
from tools.wire.refusals import require_done


@dataclass(frozen=True, slots=True)
class Defaults:
    """A broker's settings for actions that no rule decides; None: it does not show the setting."""

    super_users: frozenset[str] | None
    allow_if_none: bool | None


def select(cluster: Brokers, chosen: RuleFilter) -> list[Rule]:
    """Return the rules that a filter selects. Raises CommandError."""
    request = DescribeAclsRequest(
        resource_type_filter=chosen.resource_type,
        resource_name_filter=chosen.resource_name,
        pattern_type_filter=chosen.pattern_type,
        principal_filter=chosen.principal,
        host_filter=chosen.host,
        operation=chosen.operation,
        permission_type=chosen.permission_type,
    )
    answer = cluster.any().call(request, DescribeAclsResponse, least=1)
    _require_done(answer.error_code, answer.error_message)
    return [
        _rule(resource.resource_type, resource.resource_name, resource.pattern_type, entry)
        for resource in answer.resources
        for entry in resource.acls
    ]


def create(cluster: Brokers, rules: Sequence[Rule]) -> None:
    """Add rules. Raises CommandError with the reason of the first that was refused."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=rule.resource_type,
                resource_name=rule.resource_name,
                resource_pattern_type=rule.pattern_type,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission_type,
            )
            for rule in rules
        ]
    )
    answer = cluster.any().call(request, CreateAclsResponse, least=1)
    for result in answer.results:
        _require_done(result.error_code, result.error_message)


def delete(cluster: Brokers, filters: Iterable[RuleFilter]) -> list[Rule]:
    """Remove what filters select, and return it. Raises CommandError."""
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=chosen.resource_type,
                resource_name_filter=chosen.resource_name,
                pattern_type_filter=chosen.pattern_type,
                principal_filter=chosen.principal,
                host_filter=chosen.host,
                operation=chosen.operation,
                permission_type=chosen.permission_type,
            )
            for chosen in filters
        ]
    )
    answer = cluster.any().call(request, DeleteAclsResponse, least=1)
    removed = []
    for result in answer.filter_results:
        _require_done(result.error_code, result.error_message)
        for one in result.matching_acls:
            _require_done(one.error_code, one.error_message)
            removed.append(_rule(one.resource_type, one.resource_name, one.pattern_type, one))
    return removed


def defaults(cluster: Brokers) -> Defaults:
    """Return what the settings of the broker that was reached say of everybody's access."""
    asked = min(cluster.addresses)
    try:
        found = describe(cluster, Entity(kind=Kind.BROKER, name=str(asked)))
    except CommandError:
        return Defaults(None, None)
    values = {one.name: one.value for one in found}
    users = values.get("super.users")
    allow = values.get("allow.everyone.if.no.acl.found")
    return Defaults(
        None if users is None else frozenset(filter(None, map(str.strip, users.split(";")))),
        None if allow is None else allow.lower() == "true",
    )


def _rule(
    kind: int, name: str, pattern: int, entry: AclDescription | DeleteAclsMatchingAcl
) -> Rule:
    return Rule.of_codes(
        kind, name, pattern, entry.principal, entry.host, entry.operation, entry.permission_type
    )


def _require_done(code: int, message: str | None) -> None:
    if code == ErrorCode.SECURITY_DISABLED:
        raise CommandError(
            "the broker has no authorizer, so everybody may do everything; authorizer.class.name"
            " in its settings names one"
        )
    require_done(code, message)
