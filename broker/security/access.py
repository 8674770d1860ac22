"""What a principal must be allowed before an API's handler is called.

The declaration of an API (`broker.api_facts`) names its `Access`es: a type of resource, an
operation, and where the request names the resources (Kafka has these in `KafkaApis` and
`ControllerApis`, a method per API). Resources and operations have the names and wire codes of
Kafka's ACLs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from broker.request import RequestContext
from protocol.errors import ErrorCode

CLUSTER_NAME: Final = "kafka-cluster"
"""The one resource of type CLUSTER (Kafka's `Resource.CLUSTER_NAME`)."""
EVERY: Final = "*"
"""All resources of a type (Kafka's `ResourcePattern.WILDCARD_RESOURCE`)."""


class ResourceType(IntEnum):
    """Kafka's `ResourceType`, as far as APIs of this broker need it."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Operation(IntEnum):
    """Kafka's `AclOperation`. An authorizer knows which implies which (READ implies DESCRIBE)."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The code that refuses a request, by the type of the denied resource."""

Name = str | bytes | None
"""A resource's name, or the id of a topic (16 bytes), or None if the request leaves it out."""
Names = Callable[[RequestContext, Any], Iterable[Name]]
"""Returns the resources that a request names; if there are none, nothing is checked."""


def the_cluster(ctx: RequestContext, request: Any) -> Iterable[Name]:
    """The cluster, whatever the request says."""
    return (CLUSTER_NAME,)


@dataclass(frozen=True, slots=True)
class Access:
    """An operation that must be allowed on every resource that the request names."""

    resource: ResourceType
    operation: Operation
    names: Names = the_cluster
    unless: "Access | None" = None
    """A principal that has this access does not need the one that holds it."""

    def __str__(self) -> str:
        said = f"{self.resource.name}/{self.operation.name}"
        return said if self.unless is None else f"{said} unless {self.unless}"


# ---- where requests name resources


def field(name: str) -> Names:
    """One resource: the value of a field."""
    return lambda ctx, request: (getattr(request, name),)


def each(array: str, *fields: str) -> Names:
    """The elements of an array, which may be null; with `fields`, these fields of each element."""

    def names(ctx: RequestContext, request: Any) -> Iterator[Name]:
        for element in getattr(request, array) or ():
            if not fields:
                yield element
            for name in fields:
                yield getattr(element, name)

    return names


def each_or_every(array: str, *fields: str) -> Names:
    """As `each`, but a null array stands for all resources of the type."""
    named = each(array, *fields)
    return lambda ctx, request: (EVERY,) if getattr(request, array) is None else named(ctx, request)


def answered(ctx: RequestContext, request: Any) -> Iterable[Name]:
    """All resources of the type: the request names none, and its answer lists them all."""
    return (EVERY,)


def nothing(ctx: RequestContext, request: Any) -> Iterable[Name]:
    """No resources: the request names none of this type."""
    return ()


def by_version(changed: int, below: Names, since: Names) -> Names:
    """`below` in versions under `changed`, `since` in `changed` and later."""
    return lambda ctx, request: (below if ctx.api_version < changed else since)(ctx, request)


def where(condition: Callable[[RequestContext, Any], bool], names: Names) -> Names:
    """`names` in requests for which `condition` is true, else no resources."""
    return lambda ctx, request: names(ctx, request) if condition(ctx, request) else ()


# ---- what several APIs ask for

CLUSTER_ACTION: Final = Access(ResourceType.CLUSTER, Operation.CLUSTER_ACTION)
ALTER_CLUSTER: Final = Access(ResourceType.CLUSTER, Operation.ALTER)
DESCRIBE_CLUSTER: Final = Access(ResourceType.CLUSTER, Operation.DESCRIBE)
READ_GROUP: Final = Access(ResourceType.GROUP, Operation.READ, field("group_id"))
WRITE_TRANSACTION: Final = Access(
    ResourceType.TRANSACTIONAL_ID, Operation.WRITE, field("transactional_id")
)


def topics(operation: Operation, unless: Access | None = None) -> Access:
    """The topics of the request, by name."""
    return Access(ResourceType.TOPIC, operation, each("topics", "name"), unless)


def topics_by_id_from(version: int, operation: Operation, array: str = "topics") -> Access:
    """The topics of the request by name; from `version` on by id."""
    names = by_version(version, each(array, "name"), each(array, "topic_id"))
    return Access(ResourceType.TOPIC, operation, names)
