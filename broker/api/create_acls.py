"""CreateAcls (key 30).

Versions: 1-3.

Behaviour: SECURITY_DISABLED for each rule, as Kafka answers without an authorizer: nothing would
enforce the rule, and its author must learn that.
"""

from typing import Final

from broker.request import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

VERSIONS: Final = (1, 3)


class CreateAclsHandler:
    """Refuses with SECURITY_DISABLED: there is no authorizer."""

    async def __call__(self, ctx: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
        """The refusals, at once."""
        return _refused(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")

    def error_response(
        self, ctx: RequestContext, request: CreateAclsRequest, code: ErrorCode
    ) -> CreateAclsResponse:
        """The code for every rule."""
        return _refused(request, code, code.text)


def _refused(request: CreateAclsRequest, code: ErrorCode, message: str) -> CreateAclsResponse:
    result = AclCreationResult(error_code=code, error_message=message)
    return CreateAclsResponse(results=[result] * len(request.creations))
