"""CreateAcls (key 30).

Versions: 1-3.

Behaviour: SECURITY_DISABLED for each rule, as Kafka answers without an authorizer: nothing would
hold it, and who makes rules must learn of that.
"""

from typing import Any, Final

from broker.request import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.create_acls import AclCreationResult, CreateAclsResponse

VERSIONS: Final = (1, 3)


class CreateAclsHandler:
    """Refuses with SECURITY_DISABLED: there is no authorizer."""

    def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The refusals, at once."""
        return _refused(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code for every rule."""
        return _refused(request, code, code.text)


def _refused(request: Any, code: ErrorCode, message: str) -> Any:
    result = AclCreationResult(error_code=code, error_message=message)
    return CreateAclsResponse(results=[result] * len(request.creations))
