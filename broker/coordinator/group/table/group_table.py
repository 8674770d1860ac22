"""All groups of one partition of `__consumer_offsets` by their ids, whatever their kind.

A group whose tombstone is in flight is being deleted: requests can no longer use it, but it is
unchanged, and stays usable if the tombstone cannot be written.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from broker.coordinator.group.data.records import GroupMetadataRecord, GroupRecord
from broker.coordinator.group.data.values import DescribedGroup, ListedGroup
from broker.coordinator.group.table.group import DEAD, Group
from broker.coordinator.runtime.in_flight import InFlight
from protocol.errors import ErrorCode


class GroupTable:
    """Finds groups, and knows which of them are being deleted."""

    __slots__ = ("_groups", "_in_flight", "_new_simple_group", "get")

    def __init__(
        self, in_flight: InFlight[GroupRecord], *, new_simple_group: Callable[[str], Group]
    ) -> None:
        self._in_flight = in_flight
        self._new_simple_group = new_simple_group
        self._groups: dict[str, Group] = {}
        self.get = self._groups.get
        """(group id) -> the group, even while it is being deleted; None when there is none."""

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def ids(self) -> list[str]:
        """The names of all groups."""
        return list(self._groups)

    def put(self, group: Group) -> None:
        """Add a group, replacing one of the same id."""
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        """Remove a group, if it exists."""
        self._groups.pop(group_id, None)

    def clear(self) -> None:
        """Remove all groups."""
        self._groups.clear()

    def ensure(self, group_id: str) -> None:
        """Create a simple group for offsets that have no group."""
        if group_id not in self._groups:
            self._groups[group_id] = self._new_simple_group(group_id)

    # ---- deletion

    def is_being_deleted(self, group_id: str) -> bool:
        """Whether the group's tombstone is being written: requests see it as gone."""
        if not self._in_flight:
            return False
        return any(
            isinstance(record, GroupMetadataRecord) and record.value is None
            for record in self._in_flight.of(group_id)
        )

    def living(self, group_id: str) -> Group | None:
        """Return the group, if it exists and is not being deleted."""
        group = self.get(group_id)
        return None if group is None or self.is_being_deleted(group_id) else group

    # ---- looking

    def state_of(self, group: Group) -> str:
        """The state as requests see it: Dead while the group is being deleted."""
        if self._in_flight and self.is_being_deleted(group.group_id):
            return DEAD
        return group.state_name

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups; GROUP_ID_NOT_FOUND and Dead when there is no such group."""
        group = self.living(group_id)
        if group is None:
            return DescribedGroup(group_id=group_id, error=ErrorCode.GROUP_ID_NOT_FOUND, state=DEAD)
        return group.describe()

    def list_groups(self) -> Iterator[ListedGroup]:
        """ListGroups; groups may change while the result is iterated."""
        for group in self:
            listed = group.listed()
            if self.is_being_deleted(group.group_id):
                listed = replace(listed, state=DEAD)
            yield listed

    def _check(self) -> None:
        """Invariants, for tests."""
        for group_id, group in self._groups.items():
            assert group.group_id == group_id
            check = getattr(group, "_check", None)
            if check is not None:
                check()
