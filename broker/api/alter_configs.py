"""AlterConfigs (key 33): replace all configs of a topic.

Versions: 0-2.

Behaviour (S-CFG-4)
* What the request does not name goes back to the broker's value: old clients know no other way
  (IncrementalAlterConfigs is the better one).
* Topics only. Brokers, loggers, client metrics and groups: INVALID_REQUEST with the reason.
* Resources succeed and fail one by one; one that is named twice is an INVALID_REQUEST.
* `validate_only` checks everything and changes nothing.
"""

from collections import Counter
from typing import Any, Final

from broker.api.config_changes import check_resource, replacement
from broker.api.incremental_alter_configs import TopicConfigChanger
from broker.request import RequestContext
from config.broker_config import BrokerConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_configs import AlterConfigsResourceResponse, AlterConfigsResponse

VERSIONS: Final = (0, 2)


class AlterConfigsHandler:
    """See the module."""

    def __init__(self, controller: TopicConfigChanger, config: BrokerConfig) -> None:
        self._controller = controller
        self._config = config

    async def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The response, when all changes are stored."""
        named = Counter((r.resource_type, r.resource_name) for r in request.resources)
        responses = []
        for resource in request.resources:
            code, message = ErrorCode.NONE, None
            try:
                if named[resource.resource_type, resource.resource_name] > 1:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
                    )
                check_resource(
                    resource.resource_type, resource.resource_name, self._config.broker_id
                )
                await self._controller.alter_topic_config(
                    resource.resource_name,
                    replacement(resource.configs),
                    validate_only=request.validate_only,
                )
            except KafkaError as error:
                code, message = error.code, str(error)
            responses.append(_response(resource, code, message))
        return AlterConfigsResponse(responses=responses)

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code for every resource."""
        responses = [_response(resource, code, code.text) for resource in request.resources]
        return AlterConfigsResponse(responses=responses)


def _response(resource: Any, code: ErrorCode, message: str | None) -> Any:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
