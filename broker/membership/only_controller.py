"""In a cluster some requests are for the controller; other brokers refuse them whole.

Clients learn from Metadata who the controller is, and ask there after NOT_CONTROLLER. Kafka 3.9 on
ZooKeeper forwards nothing. Source: `kafka.server.KafkaApis`, "if (!zkSupport.controller.isActive)".
"""

from typing import Any

from broker.controller.cluster_controller import ClusterController
from broker.request import Handler, ReplyOrWork, RequestContext
from protocol.errors import ErrorCode, KafkaError


class OnlyController:
    """A handler that is called while this broker is the controller."""

    def __init__(self, handler: Handler, controller: ClusterController) -> None:
        self.handler = handler
        self.error_response = handler.error_response
        self._controller = controller

    def __call__(self, ctx: RequestContext, request: Any) -> ReplyOrWork:
        """The handler's answer. Raises KafkaError NOT_CONTROLLER."""
        if not self._controller.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return self.handler(ctx, request)
