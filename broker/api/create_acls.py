"""CreateAcls (key 30).

Behaviour: SECURITY_DISABLED for each rule, as Kafka answers without an authorizer: nothing would
enforce the rule, and its author must learn that.
"""

from typing import Final

from broker.api_facts import Api
from broker.request import RequestContext
from broker.security.access import ALTER_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

API: Final = Api(
    key=ApiKey.CREATE_ACLS,
    versions=(1, 3),
    # AclApis.handleCreateAcls
    accesses=(ALTER_CLUSTER,),
    make=lambda s: CreateAclsHandler(),
)


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
