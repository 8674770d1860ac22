"""Decides whether a principal may do something: Kafka's `Authorizer`, as far as APIs use it."""

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
        """Whether `principal` (`User:alice`), connected from address `host`, may do `operation`.

        If `name` is `access.EVERY`: whether it may on all resources of the type.
        """
        ...


class AllowAll:
    """Allows everything to everybody, as Kafka without `authorizer.class.name`.

    With it the registry builds handlers without a gate.
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
