"""One access rule: who may, or may not, do what with which resources, and from where."""

from typing import Final, NamedTuple

from protocol.acls.vocabulary import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    from_code,
)

WILDCARD: Final = "*"
"""Every resource of the type, as a literal name; every address, as a host."""
WILDCARD_PRINCIPAL: Final = "User:*"
"""Every principal, of whatever type."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The one resource of type CLUSTER (Kafka's `Resource.CLUSTER_NAME`)."""


class Pattern(NamedTuple):
    """The resources that a rule is about."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def covers(self, name: str) -> bool:
        """Whether a resource of this pattern's type with this name is one of them."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


class Rule(NamedTuple):
    """One rule. The order of the fields is the one in which Kafka's log lines have them."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    """`User:alice`, or `WILDCARD_PRINCIPAL`."""
    host: str
    """An address, a range of addresses (`10.0.0.0/8`), or `WILDCARD`."""
    operation: Operation
    permission_type: PermissionType

    @classmethod
    def of_codes(
        cls,
        resource_type: int,
        resource_name: str,
        pattern_type: int,
        principal: str,
        host: str,
        operation: int,
        permission_type: int,
    ) -> "Rule":
        """The rule with these numbers, as messages and records have them."""
        return cls(
            from_code(ResourceType, resource_type),
            resource_name,
            from_code(PatternType, pattern_type),
            principal,
            host,
            from_code(Operation, operation),
            from_code(PermissionType, permission_type),
        )

    @property
    def pattern(self) -> Pattern:
        """The resources that it is about."""
        return Pattern(self.resource_type, self.resource_name, self.pattern_type)

    def __str__(self) -> str:
        """As Kafka's `StandardAcl.toString`."""
        return (
            f"StandardAcl[resourceType={self.resource_type.name}, "
            f"resourceName={self.resource_name}, patternType={self.pattern_type.name}, "
            f"principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission_type.name}]"
        )
