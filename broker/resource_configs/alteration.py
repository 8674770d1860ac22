"""Changes configs of resources: the common part of AlterConfigs and IncrementalAlterConfigs.

Resources succeed and fail one by one; a resource changes as a whole or not at all. A resource that
is named twice gets INVALID_REQUEST. The controller changes topics, `DynamicBrokerConfig` changes
brokers, and `loggers` changes the loggers of this process. Source: Kafka's `ConfigAdminManager`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

from broker import many
from broker.cluster.dynamic_broker_config import Change, DynamicBrokerConfig
from broker.cluster.topic_names import invalid_name_reason
from broker.request import RequestContext
from broker.resource_configs.resources import ConfigResourceType, check_broker_name, unsupported
from broker.security.permissions import Permissions
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_configs import AlterConfigsResource
from protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalAlterConfigsResource,
)
from storage.waits import PAUSE, Work

if TYPE_CHECKING:
    from broker.services import TopicChanger

MAX_CONFIGS: Final = 1_000
"""Configs of one resource in one request: a broker has three hundred, a topic thirty."""


ConfigResource = AlterConfigsResource | IncrementalAlterConfigsResource
"""One resource of either request."""

ResourceT = TypeVar("ResourceT", bound=ConfigResource)


class ConfigOwners(NamedTuple):
    """The objects that change the configs of topics and brokers."""

    topics: "TopicChanger"
    brokers: DynamicBrokerConfig

    async def alter(
        self, resource_type: int, name: str, change: Change, *, validate_only: bool
    ) -> None:
        """Change the configs of a topic, a broker or all brokers. Raises KafkaError."""
        if resource_type == ConfigResourceType.TOPIC:
            if not name:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."
                )
            reason = invalid_name_reason(name)
            if reason is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            await self.topics.alter_topic_config(name, change, validate_only=validate_only)
        elif resource_type == ConfigResourceType.BROKER:
            if name:
                check_broker_name(name, self.brokers.current.broker_id)
            await self.brokers.alter(change, for_cluster=not name, validate_only=validate_only)
        else:
            raise unsupported(resource_type)


class Altered(NamedTuple):
    """The result for one resource of a request."""

    resource: ConfigResource
    code: ErrorCode
    message: str | None


async def alter_each(
    resources: Sequence[ResourceT], alter: Callable[[ResourceT], Work[None]]
) -> list[Altered]:
    """`alter` every resource; a KafkaError that it raises becomes that resource's result."""
    named: Counter[tuple[int, str]] = Counter()
    for resource in resources:
        named[resource.resource_type, resource.resource_name] += 1
        await PAUSE
    results = []
    for resource in resources:
        code, message = ErrorCode.NONE, None
        try:
            if named[resource.resource_type, resource.resource_name] > 1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
                )
            if len(resource.configs) > MAX_CONFIGS:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"More than {MAX_CONFIGS} configs are changed of one resource.",
                )
            await alter(resource)
        except KafkaError as error:
            code, message = error.code, str(error)
        results.append(Altered(resource, code, message))
        await PAUSE
    return results


class AlteringHandler:
    """Base of the handlers of both APIs, whose answers differ only in the message classes."""

    response: ClassVar[type[Any]]
    result: ClassVar[type[Any]]
    """The class of the result for one resource."""

    def __init__(self, owners: ConfigOwners, *, allowed: Permissions | None = None) -> None:
        self._allowed = allowed
        self._owners = owners

    async def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The response, when all changes are stored."""

        async def alter(resource: Any) -> None:
            await self._alter(ctx, resource, validate_only=request.validate_only)

        return self._answer(await alter_each(request.resources, alter))

    async def _alter(self, ctx: RequestContext, resource: Any, *, validate_only: bool) -> None:
        """Change one resource. Raises KafkaError."""
        raise NotImplementedError

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code for every resource."""
        return self._answer([Altered(one, code, code.text) for one in request.resources])

    def _answer(self, results: Sequence[Altered]) -> Any:
        return self.response(responses=many.results(results, self._result))

    def _result(self, altered: Altered) -> Any:
        return self.result(
            error_code=altered.code,
            error_message=altered.message,
            resource_type=altered.resource.resource_type,
            resource_name=altered.resource.resource_name,
        )
