"""Incremental fetch sessions (KIP-227, S-READ-11).

A consumer with many partitions lists them once (a full fetch, epoch 0) and gets a session id; from
then on it sends only changes, and gets only partitions with data, an error, or a new high watermark
or log start offset.

    session id, epoch      meaning
    any, 0                 full fetch; close the session named, make a new one
    any, -1                full fetch; close the session named, make none
    id, n > 0              incremental: the session's partitions, with the changes of the request

The epoch rises by one per request; any other epoch is INVALID_FETCH_SESSION_EPOCH, an unknown id
FETCH_SESSION_ID_NOT_FOUND, and a session made with topic names but used with ids (or vice versa)
FETCH_SESSION_TOPIC_ID_ERROR: the client then starts over with a full fetch.

There are `max.incremental.fetch.session.cache.slots`. When all are taken, a new session evicts the
one that was unused for longest, if that is over two minutes; else the least valuable one made more
than two minutes ago, if it is worth less than the new one (a consumer's less than a follower's, a
small one less than a large one; a follower may evict a younger one of a consumer). If none can be
evicted, the client gets id 0 and continues to send full fetches.

Partitions that gave data move to the end of the session, so that a tight byte budget is shared
fairly. Event loop only; used by `broker.api.fetch`.
After `kafka.server.FetchSession`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from broker.replication.read_plan import Entry, FetchTarget
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from storage.clock import Clock

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICTION_S: Final = 120.0
"""Seconds after which an unused session may be evicted, as in Kafka's `KafkaServer`."""
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
_MAX_INT: Final = 0x7FFFFFFF
_TELL_AGAIN: Final = -1

_NO_DIVERGENCE: Final = PartitionData().diverging_epoch

Key = tuple[str | bytes | None, int]
"""(topic name, or topic id in a session by id; partition)."""
Entries = list[Entry]


def next_epoch(epoch: int) -> int:
    """Return the epoch that follows `epoch`; it wraps to 1, because 0 means a full fetch."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _MAX_INT else epoch + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSessionStatistics:
    """`kafka.server:type=FetchSessionCache`."""

    sessions: int
    partitions_cached: int
    evictions: int


class FetchSession:
    """The partitions that one client fetches."""

    __slots__ = ("by_id", "created", "epoch", "id", "last_used", "privileged", "targets")

    def __init__(
        self, *, session_id: int, privileged: bool, by_id: bool, targets: dict[Key, FetchTarget]
    ) -> None:
        self.id = session_id
        self.privileged = privileged
        """Whether it is a follower's."""
        self.by_id = by_id
        self.targets = targets
        """By (topic name or id, partition), in the order in which they are read."""
        self.created = 0.0
        self.last_used = 0.0
        self.epoch = next_epoch(INITIAL_EPOCH)
        """The epoch that the next request must have."""

    @property
    def worth(self) -> tuple[bool, int, int]:
        """The order of eviction, the least first."""
        return self.privileged, len(self.targets), self.id

    def update(self, request: FetchRequest) -> None:
        """Add, change and remove the partitions that an incremental request names."""
        targets = self.targets
        by_id = self.by_id
        for topic in request.topics:
            name = topic.topic_id if by_id else topic.topic
            for asked in topic.partitions:
                target = targets.get((name, asked.partition))
                if target is None:
                    target = make_target(topic, asked, by_id)
                    target.known_high_watermark = target.known_log_start_offset = _TELL_AGAIN
                    targets[(name, asked.partition)] = target
                else:
                    target.fetch_offset = asked.fetch_offset
                    target.max_bytes = asked.partition_max_bytes
                    target.leader_epoch = asked.current_leader_epoch
                    target.last_fetched_epoch = asked.last_fetched_epoch
                    target.log_start_offset = asked.log_start_offset
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if by_id else forgotten.topic
            for index in forgotten.partitions:
                targets.pop((name, index), None)


def make_targets(request: FetchRequest, by_id: bool) -> Iterator[tuple[Key, FetchTarget]]:
    """Yield the targets of a full fetch; a caller with very many takes them in turns."""
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            yield (name, asked.partition), make_target(topic, asked, by_id)


def make_target(topic: FetchTopic, asked: FetchPartition, by_id: bool) -> FetchTarget:
    """Make the `FetchTarget` of one `FetchPartition` of a `FetchTopic`."""
    target = FetchTarget()
    if by_id:
        target.topic_id = topic.topic_id
    else:
        target.topic = topic.topic
    target.index = asked.partition
    target.fetch_offset = asked.fetch_offset
    target.max_bytes = asked.partition_max_bytes
    target.leader_epoch = asked.current_leader_epoch
    target.last_fetched_epoch = asked.last_fetched_epoch
    target.log_start_offset = asked.log_start_offset
    return target


class FetchSessionCache:
    """All sessions, at most `slots` of them."""

    __slots__ = ("_clock", "_random", "_sessions", "evictions", "slots")

    def __init__(self, clock: Clock, slots: int, *, random: Random) -> None:
        self._clock = clock
        self.slots = slots
        self._sessions: dict[int, FetchSession] = {}
        self._random = random
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        """The session, if it is (still) cached."""
        return self._sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        """Close a session; no error when there is none."""
        self._sessions.pop(session_id, None)

    def maybe_create(
        self, *, privileged: bool, by_id: bool, targets: dict[Key, FetchTarget]
    ) -> int:
        """Make a session and return its id, or 0 if no other can be evicted for it."""
        now = self._clock.monotonic()
        if len(self._sessions) >= self.slots and not self._evict(privileged, len(targets), now):
            return NO_SESSION
        session_id = self._random.randint(1, _MAX_INT)
        while session_id in self._sessions:
            session_id = self._random.randint(1, _MAX_INT)
        session = FetchSession(
            session_id=session_id, privileged=privileged, by_id=by_id, targets=targets
        )
        session.created = session.last_used = now
        self._sessions[session_id] = session
        return session_id

    def _evict(self, privileged: bool, size: int, now: float) -> bool:
        """Evict a session for one of this worth; return whether one could be evicted."""
        victim = self._victim(privileged, size, now)
        if victim is None:
            return False
        del self._sessions[victim.id]
        self.evictions += 1
        return True

    def _victim(self, privileged: bool, size: int, now: float) -> FetchSession | None:
        sessions = self._sessions.values()
        oldest = min(sessions, key=lambda session: session.last_used, default=None)
        if oldest is not None and now - oldest.last_used > EVICTION_S:
            return oldest
        # Young sessions are not evicted, except those of consumers by followers.
        exposed = [
            session
            for session in sessions
            if now - session.created > EVICTION_S or (privileged and not session.privileged)
        ]
        least = min(exposed, key=lambda session: session.worth, default=None)
        if least is None or (privileged, size, 0) < least.worth:
            return None
        return least

    def statistics(self) -> FetchSessionStatistics:
        """Gauges for metrics."""
        return FetchSessionStatistics(
            sessions=len(self._sessions),
            partitions_cached=sum(len(session.targets) for session in self._sessions.values()),
            evictions=self.evictions,
        )

    def open(
        self,
        request: FetchRequest,
        version: int,
        privileged: bool,
        targets: dict[Key, FetchTarget] | None = None,
    ) -> "FetchContext":
        """Return the context of a request: its targets, and its session if it has one.

        `targets` are those of a full fetch if the caller has made them (`make_targets`). Raises
        KafkaError for the whole request: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
        FETCH_SESSION_TOPIC_ID_ERROR.
        """
        epoch = request.session_epoch
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        if epoch > 0 or epoch < FINAL_EPOCH:
            session = self._sessions.get(request.session_id)
            if session is None:
                raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if session.epoch != epoch:
                raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            if session.by_id is not by_id:
                raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
            if request.topics or request.forgotten_topics_data:
                session.update(request)
            if not session.targets:
                del self._sessions[session.id]
                return FetchContext({}, by_id)
            session.last_used = self._clock.monotonic()
            session.epoch = next_epoch(epoch)
            return IncrementalContext(session)
        if request.session_id:
            self.remove(request.session_id)
        if targets is None:
            targets = dict(make_targets(request, by_id))
        if epoch == FINAL_EPOCH:
            return FetchContext(targets, by_id)
        return FullContext(targets, by_id, self, privileged)


class FetchContext:
    """A fetch without a session. If it names a partition twice, only the last entry counts."""

    __slots__ = ("_targets", "by_id")

    def __init__(self, targets: dict[Key, FetchTarget], by_id: bool) -> None:
        self._targets = targets
        self.by_id = by_id

    @property
    def targets(self) -> Collection[FetchTarget]:
        """The targets to read, in order."""
        return self._targets.values()

    def answer(self, entries: Entries) -> tuple[int, Entries]:
        """Return (session id, entries of the response) for the entries that were read.

        Raises KafkaError INVALID_FETCH_SESSION_EPOCH if another request has used the session since.
        """
        return NO_SESSION, entries

    def news(self, entries: Entries) -> Entries:
        """The entries that `answer` would return."""
        return entries

    def session_as_it_is(self) -> int:
        """The session's id for an answer without entries, which changes nothing; 0 if it has none.

        Raises KafkaError as `answer` does.
        """
        return NO_SESSION


class FullContext(FetchContext):
    """A full fetch that becomes a session when it is answered."""

    __slots__ = ("_cache", "_privileged")

    def __init__(
        self,
        targets: dict[Key, FetchTarget],
        by_id: bool,
        cache: FetchSessionCache,
        privileged: bool,
    ) -> None:
        super().__init__(targets, by_id)
        self._cache = cache
        self._privileged = privileged

    def answer(self, entries: Entries) -> tuple[int, Entries]:
        """Return all entries and the new session's id (0 if there is no room for it)."""
        session_id = self._cache.maybe_create(
            privileged=self._privileged, by_id=self.by_id, targets=self._targets
        )
        if session_id:
            for target, data, _ in entries:
                _remember(target, data)
        return session_id, entries


class IncrementalContext(FetchContext):
    """A fetch of an established session."""

    __slots__ = ("_expected_epoch", "_session")

    def __init__(self, session: FetchSession) -> None:
        super().__init__(session.targets, session.by_id)
        self._session = session
        self._expected_epoch = session.epoch

    def answer(self, entries: Entries) -> tuple[int, Entries]:
        """Return only the entries that are news to the client."""
        session_id = self.session_as_it_is()
        targets = self._session.targets
        by_id = self._session.by_id
        news: Entries = []
        for entry in entries:
            target, data, size = entry
            if size:
                key = (target.topic_id if by_id else target.topic, target.index)
                if targets.pop(key, None) is not None:
                    targets[key] = target
            elif not _is_news(target, data):
                continue
            news.append(entry)
            _remember(target, data)
        return session_id, news

    def news(self, entries: Entries) -> Entries:
        """The entries that `answer` would return."""
        return [entry for entry in entries if entry[2] or _is_news(entry[0], entry[1])]

    def session_as_it_is(self) -> int:
        """The session's id. Raises KafkaError as `answer` does."""
        if self._session.epoch != self._expected_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        return self._session.id


def _is_news(target: FetchTarget, data: PartitionData) -> bool:
    """Whether an entry without records tells the client something."""
    return (
        data.error_code != 0
        or data.high_watermark != target.known_high_watermark
        or data.log_start_offset != target.known_log_start_offset
        or data.diverging_epoch is not _NO_DIVERGENCE
        or data.preferred_read_replica >= 0
    )


def _remember(target: FetchTarget, data: PartitionData) -> None:
    """Note what the client gets. After an answer that it does not take the watermark from (an
    error, a diverging epoch), its next entry is sent even if nothing changed."""
    untaken = data.error_code or data.diverging_epoch is not _NO_DIVERGENCE
    target.known_high_watermark = _TELL_AGAIN if untaken else data.high_watermark
    target.known_log_start_offset = data.log_start_offset
