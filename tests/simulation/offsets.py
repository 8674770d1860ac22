"""What must hold of groups, beside what `tests.anomalies.checker` looks at.

lost commit        an offset fetched for a group lies below one whose commit was acknowledged
                   before the fetch was asked for. (Members go on where they were told, so what
                   is acknowledged for a partition rises)
shared partition   two members of one generation were given the same partition
old generation     a commit was acknowledged to a member of a generation, although a later one had
                   been heard of before the commit was sent
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class GroupLedger:
    """What groups were told, by everybody."""

    findings: list[str] = field(default_factory=list)
    _acknowledged: dict[tuple[str, str], int] = field(default_factory=dict)
    _owners: dict[tuple[str, int, str], str] = field(default_factory=dict)
    _generations: dict[str, int] = field(default_factory=dict)

    def generation(self, group: str) -> int:
        """The latest that any member has heard of."""
        return self._generations.get(group, -1)

    def commit_acknowledged(
        self, who: str, group: str, offsets: Mapping[str, int], generation: int, latest: int
    ) -> None:
        """A member's commit was answered with NONE; `latest` generation as when it was sent."""
        if generation < latest:
            self.findings.append(
                f"old generation: {who} of generation {generation} of group {group} committed "
                f"{dict(offsets)} after generation {latest} had begun"
            )
        for key, offset in offsets.items():
            place = group, key
            self._acknowledged[place] = max(offset, self._acknowledged.get(place, -1))

    def floor(self, group: str, key: str) -> int:
        """Below this no offset may be fetched by who asks now."""
        return self._acknowledged.get((group, key), -1)

    def fetched(self, who: str, group: str, key: str, offset: int, floor: int) -> None:
        """An offset was answered; `floor` as it was when it was asked for."""
        if offset < floor:
            self.findings.append(
                f"lost commit: {who} was told {offset} for {key} of group {group}, where {floor} "
                "had been acknowledged"
            )

    def assigned(self, who: str, group: str, generation: int, keys: Any) -> None:
        """A member heard what it has."""
        self._generations[group] = max(generation, self.generation(group))
        for key in keys:
            owner = self._owners.setdefault((group, generation, key), who)
            if owner != who:
                self.findings.append(
                    f"shared partition: {key} of group {group}, generation {generation}, was "
                    f"given to {owner} and to {who}"
                )
