"""DescribeAcls (key 29): the access rules that a filter selects.

Behaviour (S-ACL-6)
* Rules of one pattern stand together. ANY and null fit everything; a pattern type of MATCH selects
  what a resource of the filter's name matches.
* A code that is none of Kafka's is an INVALID_REQUEST. (Kafka hangs up, or selects nothing.)
* Without an authorizer SECURITY_DISABLED. Tools that copy rules from cluster to cluster
  (MirrorMaker 2) ask every few minutes; they take this answer for "there are none".
"""

from typing import TYPE_CHECKING, Final

from broker import many
from broker.api_facts import Api
from broker.request import RequestContext
from broker.security.access import DESCRIBE_CLUSTER
from protocol.acls.filters import RuleFilter
from protocol.acls.rules import Pattern, Rule
from protocol.acls.vocabulary import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    from_code,
)
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_acls import DeleteAclsFilter
from protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.security.acl_store import AclStore

API: Final = Api(
    key=ApiKey.DESCRIBE_ACLS,
    versions=(1, 3),
    ends_with_client=True,
    # AclApis.handleDescribeAcls
    accesses=(DESCRIBE_CLUSTER,),
    make=lambda s: DescribeAclsHandler(s.acls),
)


class DescribeAclsHandler:
    """Lists rules; refuses with SECURITY_DISABLED if there is no authorizer."""

    def __init__(self, acls: "AclStore | None") -> None:
        self._acls = acls

    async def __call__(
        self, ctx: RequestContext, request: DescribeAclsRequest
    ) -> DescribeAclsResponse:
        """The response."""
        if self._acls is None:
            return _refused(
                ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker"
            )
        chosen = filter_of(request)
        if chosen.is_unknown:
            return _refused(ErrorCode.INVALID_REQUEST, "The filter has an unknown element.")
        found: dict[Pattern, list[Rule]] = {}
        rules = await self._acls.select(chosen)
        for rule in rules:
            found.setdefault(rule.pattern, []).append(rule)
            await PAUSE
        ctx.large |= len(rules) > many.MANY
        return DescribeAclsResponse(
            error_code=ErrorCode.NONE,
            resources=many.results(
                list(found), lambda pattern: _described(pattern, found[pattern])
            ),
        )

    def error_response(
        self, ctx: RequestContext, request: DescribeAclsRequest, code: ErrorCode
    ) -> DescribeAclsResponse:
        """The code, and no rules."""
        return _refused(code, code.text)


def filter_of(asked: DescribeAclsRequest | DeleteAclsFilter) -> RuleFilter:
    """The filter in a request."""
    return RuleFilter(
        from_code(ResourceType, asked.resource_type_filter),
        asked.resource_name_filter,
        from_code(PatternType, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        from_code(Operation, asked.operation),
        from_code(PermissionType, asked.permission_type),
    )


def _described(pattern: Pattern, rules: list[Rule]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=many.results(
            rules,
            lambda rule: AclDescription(
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission_type,
            ),
        ),
    )


def _refused(code: ErrorCode, message: str) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=message, resources=[])
