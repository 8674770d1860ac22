"""DeleteAcls (key 31).

Versions: 1-3.

Behaviour: SECURITY_DISABLED for each filter, as Kafka answers without an authorizer.
"""

from typing import Any, Final

from broker.request import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsResponse

VERSIONS: Final = (1, 3)


class DeleteAclsHandler:
    """Refuses with SECURITY_DISABLED: there is no authorizer."""

    def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The refusals, at once."""
        return _refused(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code for every filter."""
        return _refused(request, code, code.text)


def _refused(request: Any, code: ErrorCode, message: str) -> Any:
    result = DeleteAclsFilterResult(error_code=code, error_message=message, matching_acls=[])
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))
