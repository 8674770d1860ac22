"""DescribeCluster (key 60): the cluster's id, brokers and controller.

Behaviour
* Brokers have the address for the client's own listener (`broker.cluster.endpoints`).
* The cluster's authorized operations are INT_MIN unless the request asks for them, and none for who
  may not describe the cluster.

Version notes
* v1+: the client says which kind of endpoint it means to talk to: brokers (1). Controllers (2) are
  MISMATCHED_ENDPOINT_TYPE here, anything else UNSUPPORTED_ENDPOINT_TYPE.
* v2+: fenced brokers on request; a stand-alone broker is never fenced.
"""

from typing import Final

from broker.api_facts import Api
from broker.cluster.endpoints import endpoint_for
from broker.cluster.image import MetadataImage
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.authorized_operations import cluster_operations
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

API: Final = Api(
    key=ApiKey.DESCRIBE_CLUSTER,
    versions=(0, 2),
    shows_image=True,
    # AuthHelper.computeDescribeClusterResponse
    asks=(Question(ResourceType.CLUSTER, Operation.DESCRIBE),),
    make=lambda s: DescribeClusterHandler(s.image, allowed=s.allowed),
)

BROKERS: Final = 1
CONTROLLERS: Final = 2


class DescribeClusterHandler:
    """Lists the brokers of the metadata image, with their addresses for the client's listener."""

    def __init__(self, image: MetadataImage, *, allowed: Permissions | None = None) -> None:
        self._image = image
        self._allowed = allowed

    def __call__(
        self, ctx: RequestContext, request: DescribeClusterRequest
    ) -> DescribeClusterResponse:
        """The response, at once."""
        if ctx.api_version >= 1 and request.endpoint_type == CONTROLLERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="The request was sent to an endpoint of type BROKER, but we wanted "
                "an endpoint of type CONTROLLER",
                cluster_id="",
                brokers=[],
            )
        if ctx.api_version >= 1 and request.endpoint_type != BROKERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"Unsupported endpoint type {request.endpoint_type}",
                cluster_id="",
                brokers=[],
            )
        brokers = []
        for broker in self._image.brokers():
            endpoint = endpoint_for(broker, ctx.connection)
            if endpoint is not None:
                brokers.append(
                    DescribeClusterBroker(
                        broker_id=broker.broker_id,
                        host=endpoint.host,
                        port=endpoint.port,
                        rack=broker.rack,
                    )
                )
        response = DescribeClusterResponse(
            error_code=ErrorCode.NONE,
            endpoint_type=BROKERS,
            cluster_id=self._image.cluster_id,
            controller_id=self._image.controller_id,
            brokers=brokers,
        )
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = cluster_operations(self._allowed, ctx)
        return response

    def error_response(
        self, ctx: RequestContext, request: DescribeClusterRequest, code: ErrorCode
    ) -> DescribeClusterResponse:
        """The code for the response as a whole."""
        return DescribeClusterResponse(
            error_code=code, error_message=code.text, cluster_id="", brokers=[]
        )
