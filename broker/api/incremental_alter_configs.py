"""IncrementalAlterConfigs (key 44): set, delete, append, subtract single configs.

Versions: 0-1.

Behaviour (S-CFG-4)
* Topics only. Brokers, loggers, client metrics and groups: INVALID_REQUEST with the reason.
* APPEND and SUBTRACT work on lists only (INVALID_CONFIG) and start from the value in force, the
  broker's when the topic sets none. A key may be named once.
* Resources succeed and fail one by one; a resource changes as a whole or not at all. A resource
  that is named twice is an INVALID_REQUEST.
* `validate_only` checks everything and changes nothing.
"""

from collections import Counter
from typing import Any, Final, Protocol

from broker.api.config_changes import Change, check_resource, incremental
from broker.request import RequestContext
from config.broker_config import BrokerConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

VERSIONS: Final = (0, 1)


class TopicConfigChanger(Protocol):
    """What is needed of `broker.cluster.controller.Controller`."""

    async def alter_topic_config(
        self, name: str, change: Change, *, validate_only: bool = False
    ) -> None:
        """Change what a topic sets itself. Raises KafkaError."""
        ...


class IncrementalAlterConfigsHandler:
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
                    incremental(resource.configs, self._config),
                    validate_only=request.validate_only,
                )
            except KafkaError as error:
                code, message = error.code, str(error)
            responses.append(_response(resource, code, message))
        return IncrementalAlterConfigsResponse(responses=responses)

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code for every resource."""
        responses = [_response(resource, code, code.text) for resource in request.resources]
        return IncrementalAlterConfigsResponse(responses=responses)


def _response(resource: Any, code: ErrorCode, message: str | None) -> Any:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
