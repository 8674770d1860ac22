"""Changes configs of resources: what AlterConfigs and IncrementalAlterConfigs have in common.

Resources succeed and fail one by one; a resource changes as a whole or not at all. A resource that
is named twice is an INVALID_REQUEST. The controller changes topics, `DynamicBrokerConfig` brokers,
`loggers` the loggers of this process. Source: Kafka's `ConfigAdminManager`.
"""

from collections import Counter
from collections.abc import Callable, Sequence, Sized
from typing import Final, NamedTuple, Protocol, TypeVar

from broker import many
from broker.cluster.dynamic_broker_config import Change
from broker.cluster.topic_names import invalid_name_reason
from broker.resource_configs.resources import ConfigResourceType, check_broker_name, unsupported
from config.broker_config import BrokerConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.schema.lazy import Elements
from storage.waits import PAUSE, Work

MAX_CONFIGS: Final = 1_000
"""Configs of one resource in one request: a broker has three hundred, a topic thirty."""


class ConfigResource(Protocol):
    """One resource of either request."""

    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Sized:
        """The changes of its configs."""
        ...


ResourceT = TypeVar("ResourceT", bound=ConfigResource)
ResultT = TypeVar("ResultT")
ResponseT = TypeVar("ResponseT")
ResultT_co = TypeVar("ResultT_co", covariant=True)
ResponseT_co = TypeVar("ResponseT_co", covariant=True)
ResultT_contra = TypeVar("ResultT_contra", contravariant=True)


class ResultMaker(Protocol[ResultT_co]):
    """The class of one resource's result."""

    def __call__(
        self, *, error_code: int, error_message: str | None, resource_type: int, resource_name: str
    ) -> ResultT_co:
        """The result."""
        ...


class ResponseMaker(Protocol[ResultT_contra, ResponseT_co]):
    """The class of a response."""

    def __call__(self, *, responses: Elements[ResultT_contra]) -> ResponseT_co:
        """The response."""
        ...


class TopicConfigChanger(Protocol):
    """The part of `broker.cluster.controller.Controller` that is used here."""

    async def alter_topic_config(
        self, name: str, change: Change, *, validate_only: bool = False
    ) -> None:
        """Change the configs that a topic sets itself. Raises KafkaError."""
        ...


class BrokerConfigChanger(Protocol):
    """The part of `broker.cluster.dynamic_broker_config.DynamicBrokerConfig` that is used here."""

    @property
    def current(self) -> BrokerConfig:
        """The configuration in force."""
        ...

    async def alter(
        self, change: Change, *, for_cluster: bool, validate_only: bool = False
    ) -> None:
        """Change the dynamic configs of the cluster or of this broker. Raises KafkaError."""
        ...


class ConfigOwners(NamedTuple):
    """The objects that change the configs of topics and brokers."""

    topics: TopicConfigChanger
    brokers: BrokerConfigChanger

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
    """What became of one resource of a request."""

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


def response_of(
    results: Sequence[Altered],
    response: ResponseMaker[ResultT, ResponseT],
    of_resource: ResultMaker[ResultT],
) -> ResponseT:
    """Build the response of either API: both answer alike, with message classes of their own."""
    return response(
        responses=many.results(
            results,
            lambda altered: of_resource(
                error_code=altered.code,
                error_message=altered.message,
                resource_type=altered.resource.resource_type,
                resource_name=altered.resource.resource_name,
            ),
        )
    )


def refuse_each(resources: Sequence[ConfigResource], code: ErrorCode) -> list[Altered]:
    """The same code for every resource."""
    return [Altered(resource, code, code.text) for resource in resources]
