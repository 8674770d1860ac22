"""DescribeAcls (key 29).

Versions: 1-3.

Behaviour: SECURITY_DISABLED, as Kafka answers without an authorizer. Tools that copy ACLs from
cluster to cluster (MirrorMaker 2) ask every few minutes; they take this answer for "there are
none", but would log an error each time if the API were missing.
"""

from typing import Final

from broker.request import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

VERSIONS: Final = (1, 3)


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
