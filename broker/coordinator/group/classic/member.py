"""One member of a classic group (Kafka's `ClassicGroupMember`).

It is *awaiting join* (or *sync*) while its JoinGroup (SyncGroup) request is parked; the signal of
the reply is only held here. Only `ClassicGroup` and the decisions of this package change a member.
"""

from collections.abc import Iterable

from broker.coordinator.group.data.values import JoinReply, SyncReply
from storage.waits import Signal

ProtocolList = tuple[tuple[str, bytes], ...]
"""(protocol name, metadata) in the member's order of preference."""


class Member:
    """One member. Its protocols, timeouts and parked requests change; its identity does not."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: ProtocolList,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Signal[JoinReply] | None = None
        self.awaiting_sync: Signal[SyncReply] | None = None
        self.is_new = False
        """Whether it first joined in the current rebalance. It has no response yet and cannot
        send heartbeats, so its parked join counts as alive only for a limited time."""

    @property
    def satisfies_heartbeat(self) -> bool:
        """A parked request proves that the member lives, except for a new member's first join."""
        if self.is_new:
            return False
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol_name: str | None) -> bytes:
        """The member's metadata for this protocol; empty when it does not support it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def vote(self, candidates: Iterable[str]) -> str:
        """The candidate that this member prefers. Raises ValueError when it supports none."""
        wanted = set(candidates)
        for name, _ in self.protocols:
            if name in wanted:
                return name
        raise ValueError(f"member {self.member_id} supports none of {sorted(wanted)}")
