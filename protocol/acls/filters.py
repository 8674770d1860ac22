"""Which rules a request selects (Kafka's `AclBindingFilter`).

None and ANY fit everything. A pattern type of MATCH with a name selects every pattern that a
resource of that name matches: its own literal, the wildcard, and prefixes.
"""

from typing import NamedTuple

from protocol.acls.rules import Pattern, Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType


class RuleFilter(NamedTuple):
    """The conditions that a rule must meet to be selected."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission_type: PermissionType = PermissionType.ANY

    @property
    def is_unknown(self) -> bool:
        """Whether one of its codes is unknown."""
        words = self.resource_type, self.pattern_type, self.operation, self.permission_type
        return 0 in words

    @property
    def only_pattern(self) -> Pattern | None:
        """The one pattern that it may select rules of; None if they may be several."""
        if self.resource_name is None or self.resource_type is ResourceType.ANY:
            return None
        if self.pattern_type in (PatternType.ANY, PatternType.MATCH):
            return None
        return Pattern(self.resource_type, self.resource_name, self.pattern_type)

    def fits_pattern(self, pattern: Pattern) -> bool:
        """Whether rules about these resources may be selected."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type is PatternType.MATCH:
            return self.resource_name is None or pattern.covers(self.resource_name)
        if self.pattern_type not in (PatternType.ANY, pattern.pattern_type):
            return False
        return self.resource_name in (None, pattern.name)

    def fits_entry(self, rule: Rule) -> bool:
        """Whether a rule is selected whose pattern fits."""
        return (
            self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission_type in (PermissionType.ANY, rule.permission_type)
        )

    def fits(self, rule: Rule) -> bool:
        """Whether a rule is selected."""
        return self.fits_pattern(rule.pattern) and self.fits_entry(rule)
