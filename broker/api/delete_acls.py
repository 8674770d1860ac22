"""DeleteAcls (key 31): remove the access rules that filters select.

Behaviour (S-ACL-6, S-ACL-7)
* The answer lists, for each filter, the rules that it selected; a rule that two of them select is
  listed twice. All are removed, or none.
* A filter with a code that is none of Kafka's is an INVALID_REQUEST and selects nothing. (Kafka
  hangs up.) More than 10,000 rules in all are an INVALID_REQUEST for every filter.
* Without an authorizer SECURITY_DISABLED for each filter.
"""

from typing import TYPE_CHECKING, Final

from broker import many
from broker.api.describe_acls import filter_of
from broker.api_facts import Api
from broker.request import RequestContext
from broker.security.access import ALTER_CLUSTER
from protocol.acls.filters import RuleFilter
from protocol.acls.rules import Rule
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from broker.security.acl_store import AclStore

API: Final = Api(
    key=ApiKey.DELETE_ACLS,
    versions=(1, 3),
    most_elements=1_000,
    # AclApis.handleDeleteAcls
    accesses=(ALTER_CLUSTER,),
    make=lambda s: DeleteAclsHandler(s.acls),
)


class DeleteAclsHandler:
    """Removes rules; refuses with SECURITY_DISABLED if there is no authorizer."""

    def __init__(self, acls: "AclStore | None") -> None:
        self._acls = acls

    async def __call__(self, ctx: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
        """The response, when the rules are gone."""
        if self._acls is None:
            return _refused(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        filters = list(map(filter_of, request.filters))
        try:
            selected = await self._acls.delete(one for one in filters if not one.is_unknown)
        except KafkaError as error:
            return _refused(request, error.code, str(error))
        ctx.large |= sum(map(len, selected)) > many.MANY
        found = iter(selected)
        return DeleteAclsResponse(
            filter_results=[_result(one, [] if one.is_unknown else next(found)) for one in filters]
        )

    def error_response(
        self, ctx: RequestContext, request: DeleteAclsRequest, code: ErrorCode
    ) -> DeleteAclsResponse:
        """The code for every filter."""
        return _refused(request, code, code.text)


def _result(chosen: RuleFilter, rules: list[Rule]) -> DeleteAclsFilterResult:
    if chosen.is_unknown:
        return DeleteAclsFilterResult(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="The filter has an unknown element.",
            matching_acls=[],
        )
    return DeleteAclsFilterResult(
        error_code=ErrorCode.NONE, matching_acls=many.results(rules, _removed)
    )


def _removed(rule: Rule) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        resource_type=rule.resource_type,
        resource_name=rule.resource_name,
        pattern_type=rule.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission_type,
    )


def _refused(request: DeleteAclsRequest, code: ErrorCode, message: str) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=code, error_message=message, matching_acls=[])
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))
