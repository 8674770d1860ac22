"""Who decides whether a principal may do something: Kafka's `Authorizer`, as far as APIs ask it."""

from typing import Final, Protocol

from broker.security.access import Operation, ResourceType


class Authorizer(Protocol):
    """Decides at once, from what it holds in memory."""

    def authorize(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Whether `principal` (`User:alice`), connected from the address `host`, may do that.

        `name` may be `access.EVERY`: whether all resources of the type are allowed.
        """
        ...


class AllowAll:
    """Everybody may do everything, as in Kafka without `authorizer.class.name`.

    Handlers are not put behind a gate for it.
    """

    def authorize(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Yes."""
        return True


ALLOW_ALL: Final = AllowAll()
