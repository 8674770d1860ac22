"""The follower's side of a fetch session: a fetch names only what the leader does not know. Pure.

`want` says from where a partition is to be fetched, or that it is not; `plan` gives the partitions
that the next request has to name. The first request names all; the leader answers with a session's
id, and from then on requests name the partitions that have changed. `answered` takes the head of
the leader's answer. After an error, or a lost connection, the next request names all again
(`start_over`).

The cost of a plan is that of the changes, not of all partitions. The leader's side is
`broker.replication.fetch_session`. After `org.apache.kafka.clients.FetchSessionHandler` (KIP-227).
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from broker.replication.fetch_session import INITIAL_EPOCH, NO_SESSION, next_epoch
from protocol.errors import ErrorCode
from protocol.types import TopicPartition


class Ask(NamedTuple):
    """The position from which a partition is fetched."""

    topic_id: bytes
    fetch_offset: int
    log_start_offset: int
    leader_epoch: int
    last_fetched_epoch: int
    """Epoch of the record before `fetch_offset`; -1 if the log has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """The content of one fetch request."""

    session_id: int
    session_epoch: int
    asks: dict[TopicPartition, Ask]
    """The partitions that it names, in the order in which they are wanted first."""
    forgotten: dict[TopicPartition, bytes]
    """Partitions to drop from the session, with their topics' ids."""


class ClientSession:
    """The partitions of one connection's session."""

    __slots__ = ("_changed", "_epoch", "_id", "_known", "_wanted")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._wanted: dict[TopicPartition, Ask] = {}
        self._known: dict[TopicPartition, Ask] = {}
        """The partitions that the leader knows, if it got the last request."""
        self._changed: dict[TopicPartition, None] = {}

    def want(self, tp: TopicPartition, ask: Ask | None) -> None:
        """Fetch `tp` as `ask` says from now on; if it is None, not at all."""
        if self._wanted.get(tp) == ask:
            return
        if ask is None:
            del self._wanted[tp]
        else:
            self._wanted[tp] = ask
        self._changed[tp] = None

    def asked(self, tp: TopicPartition) -> Ask | None:
        """The last `Ask` for `tp`; None if it is not in the session."""
        return self._known.get(tp)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to ask for, and nothing to forget."""
        return not self._wanted and (self._epoch == INITIAL_EPOCH or not self._known)

    def plan(self) -> SessionPlan:
        """Return the content of the next request, which the leader knows from now on."""
        forgotten: dict[TopicPartition, bytes] = {}
        if self._epoch == INITIAL_EPOCH:
            asks = dict(self._wanted)
            self._known = dict(asks)
        else:
            asks = {}
            for tp in self._changed:
                ask, known = self._wanted.get(tp), self._known.get(tp)
                if known is not None and (ask is None or ask.topic_id != known.topic_id):
                    forgotten[tp] = known.topic_id
                    del self._known[tp]
                if ask is not None and ask != known:
                    asks[tp] = self._known[tp] = ask
        self._changed.clear()
        return SessionPlan(
            session_id=self._id, session_epoch=self._epoch, asks=asks, forgotten=forgotten
        )

    def answered(self, error_code: int, session_id: int) -> bool:
        """Take the head of the answer to the last plan; return whether its body counts."""
        if error_code:
            keeps_id = error_code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._epoch = INITIAL_EPOCH
            if not keeps_id:
                self._id = NO_SESSION
            return False
        if session_id == NO_SESSION:  # the leader has no room for a session, or has closed it
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self._id, self._epoch = session_id, next_epoch(self._epoch)
        return True

    def start_over(self) -> None:
        """The answer is lost: name everything next time, and close the session if it is there."""
        self._epoch = INITIAL_EPOCH


LARGEST_NAMELESS: Final = 12
"""The last version of Fetch that names topics by name."""
