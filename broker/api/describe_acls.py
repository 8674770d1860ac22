"""DescribeAcls (key 29).

Behaviour: SECURITY_DISABLED, as Kafka answers without an authorizer. Tools that copy ACLs from
cluster to cluster (MirrorMaker 2) ask every few minutes; they take this answer for "there are
none", but would log an error each time if the API were missing.
"""

from typing import Final

from broker.api_facts import Api
from broker.request import RequestContext
from broker.security.access import DESCRIBE_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

API: Final = Api(
    key=ApiKey.DESCRIBE_ACLS,
    versions=(1, 3),
    # AclApis.handleDescribeAcls
    accesses=(DESCRIBE_CLUSTER,),
    make=lambda s: DescribeAclsHandler(),
)


class DescribeAclsHandler:
    """Refuses with SECURITY_DISABLED: there is no authorizer."""

    async def __call__(
        self, ctx: RequestContext, request: DescribeAclsRequest
    ) -> DescribeAclsResponse:
        """The refusal, at once."""
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message="No Authorizer is configured on the broker",
            resources=[],
        )

    def error_response(
        self, ctx: RequestContext, request: DescribeAclsRequest, code: ErrorCode
    ) -> DescribeAclsResponse:
        """The code, and no rules."""
        return DescribeAclsResponse(error_code=code, error_message=code.text, resources=[])
