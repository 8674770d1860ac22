"""The promises to groups, beside those that `tests.anomalies.checker` checks.

lost commit        OffsetFetch returns an offset below one whose commit was acknowledged before the
                   request was sent. (Members begin at the committed offsets, so the acknowledged
                   offsets of a partition rise)
shared partition   two members of one generation have the same partition
old generation     a commit of a member was acknowledged, although some member had joined a later
                   generation before the commit was sent
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class GroupLedger:
    """The broker's answers to all members of all groups."""

    findings: list[str] = field(default_factory=list)
    _acknowledged: dict[tuple[str, str], int] = field(default_factory=dict)
    _owners: dict[tuple[str, int, str], str] = field(default_factory=dict)
    _generations: dict[str, int] = field(default_factory=dict)

    def generation(self, group: str) -> int:
        """Return the latest generation that any member has joined; -1 if there is none."""
        return self._generations.get(group, -1)

    def commit_acknowledged(
        self, who: str, group: str, offsets: Mapping[str, int], generation: int, latest: int
    ) -> None:
        """Note that a commit succeeded; `latest` was the latest generation when it was sent."""
        if generation < latest:
            self.findings.append(
                f"old generation: {who} of generation {generation} of group {group} committed "
                f"{dict(offsets)} after generation {latest} had begun"
            )
        for key, offset in offsets.items():
            place = group, key
            self._acknowledged[place] = max(offset, self._acknowledged.get(place, -1))

    def floor(self, group: str, key: str) -> int:
        """Return the offset below which an OffsetFetch that is sent now may return none."""
        return self._acknowledged.get((group, key), -1)

    def fetched(self, who: str, group: str, key: str, offset: int, floor: int) -> None:
        """Note the offset of an answer; `floor` is that of the moment of the request."""
        if offset < floor:
            self.findings.append(
                f"lost commit: {who} was told {offset} for {key} of group {group}, where {floor} "
                "had been acknowledged"
            )

    def assigned(self, who: str, group: str, generation: int, keys: Any) -> None:
        """Note the partitions of a member."""
        self._generations[group] = max(generation, self.generation(group))
        for key in keys:
            owner = self._owners.setdefault((group, generation, key), who)
            if owner != who:
                self.findings.append(
                    f"shared partition: {key} of group {group}, generation {generation}, was "
                    f"given to {owner} and to {who}"
                )
