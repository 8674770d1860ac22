"""The operations that a principal must be allowed, as the files of the APIs declare them.

An API (`broker.api_facts`) names the `Access`es without which a request is refused whole; the gate
checks them before the handler is called. The handler itself checks parts of a request (topics among
others, groups of a listing), where it sorts known from unknown, and the API lists these checks as
`Question`s. Kafka has both in `KafkaApis` and `ControllerApis`, a method per API. Resources and
operations have the names and codes of Kafka's ACLs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from broker.request import RequestContext
from protocol.acls.rules import CLUSTER_NAME
from protocol.acls.vocabulary import Operation, ResourceType
from protocol.errors import ErrorCode

__all__ = [
    "ALTER_CLUSTER",
    "CLUSTER_ACTION",
    "CLUSTER_NAME",
    "DENIED",
    "DESCRIBE_CLUSTER",
    "READ_GROUP",
    "WRITE_TRANSACTION",
    "Access",
    "Names",
    "Operation",
    "Question",
    "ResourceType",
    "field",
    "the_cluster",
]

DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The code of a denial, by the type of the denied resource."""

Names = Callable[[RequestContext, Any], Iterable[str]]
"""Returns the resources that a request is about; if there are none, nothing is checked."""


def the_cluster(ctx: RequestContext, request: Any) -> Iterable[str]:
    """The cluster, whatever the request says."""
    return (CLUSTER_NAME,)


def field(name: str) -> Names:
    """One resource: the value of a field."""
    return lambda ctx, request: (getattr(request, name),)


class Question(NamedTuple):
    """An operation on resources of one type, which a handler checks one by one."""

    resource: ResourceType
    operation: Operation

    def __str__(self) -> str:
        return f"{self.resource.name}/{self.operation.name}"


@dataclass(frozen=True, slots=True)
class Access:
    """An operation without which a request is refused whole."""

    resource: ResourceType
    operation: Operation
    names: Names = the_cluster
    unless: Question | None = None
    """A principal that may do this with the cluster needs no access. Its denial is not logged."""

    def __str__(self) -> str:
        said = f"{self.resource.name}/{self.operation.name}"
        return said if self.unless is None else f"{said} unless {self.unless}"


# ---- accesses of several APIs

CLUSTER_ACTION: Final = Access(ResourceType.CLUSTER, Operation.CLUSTER_ACTION)
ALTER_CLUSTER: Final = Access(ResourceType.CLUSTER, Operation.ALTER)
DESCRIBE_CLUSTER: Final = Access(ResourceType.CLUSTER, Operation.DESCRIBE)
READ_GROUP: Final = Access(ResourceType.GROUP, Operation.READ, field("group_id"))
WRITE_TRANSACTION: Final = Access(
    ResourceType.TRANSACTIONAL_ID, Operation.WRITE, field("transactional_id")
)
