"""DeleteAcls (key 31).

Versions: 1-3.

Behaviour: SECURITY_DISABLED for each filter, as Kafka answers without an authorizer.
"""

from typing import Final

from broker.request import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

VERSIONS: Final = (1, 3)


class DeleteAclsHandler:
    """Refuses with SECURITY_DISABLED: there is no authorizer."""

    async def __call__(self, ctx: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
        """The refusals, at once."""
        return _refused(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")

    def error_response(
        self, ctx: RequestContext, request: DeleteAclsRequest, code: ErrorCode
    ) -> DeleteAclsResponse:
        """The code for every filter."""
        return _refused(request, code, code.text)


def _refused(request: DeleteAclsRequest, code: ErrorCode, message: str) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=code, error_message=message, matching_acls=[])
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))
