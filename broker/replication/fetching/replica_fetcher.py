"""A task that copies some partitions of one leader, over one connection of its own.

    begin new ones -> name the changed ones -> ask the leader -> append, truncate, rest -> again

A partition in it is

* *new*: where its log ends is not known yet (`copying.beginning`), as after `Moved`;
* *fetching*: named in the session, from where its log ends;
* *throttled*: while the rate of its throttle is exceeded (`throttle`) and it lags; not in the
  session;
* *resting*: after an error, for `replica.fetch.backoff.ms`; not in the session. If the only reason
  is that the leader does not know of its role yet, as right after an election, it rests first for a
  twentieth of a second and then twice as long each time, because acks=all waits for this;
* no longer here: unfollowed, or failed. A failed one waits for the controller (`steps`, D) or for
  an operator: its records cannot be appended, and asking again would bring the same ones.

An answer counts for a partition only while the partition still fetches from the offset and in the
epoch of the request. If it does not count, the next fetch names all partitions anew, because the
leader takes its answer for known and would not repeat a high watermark in it.

Errors concern one partition each: a damaged batch or a failed disk stops no other. If the leader is
not reached, all rest together, and the next attempt takes another connection, because the broker
may have come back with another address.

The task ends when nothing is left to copy. After `AbstractFetcherThread`.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from broker.peers.peer import Peer, PeerError
from broker.replication import copying
from broker.replication.copying import Moved, Superseded, append_copied, take_marks
from broker.replication.fetching.client_session import Ask, ClientSession
from broker.replication.fetching.leader_endpoint import LeaderEndpoint
from broker.replication.fetching.notices import Notices
from broker.replication.fetching.settings import FetchingSettings
from broker.replication.fetching.statistics import FetcherStatistics
from broker.replication.fetching.steps import FetcherStep, restart, step_for
from broker.replication.partition import Partition
from broker.replication.throttle import ReplicationThrottle
from broker.replication.truncation import EpochEnd, Truncation, truncation_for
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchResponse, PartitionData
from protocol.records.errors import RecordsError
from protocol.types import ZERO_UUID, TopicPartition
from storage.clock import Clock
from storage.errors import OutOfResources, StorageError
from storage.log.log import Log
from storage.logging_limit import LoggingLimit
from storage.waits import PAUSE, Signal

logger = logging.getLogger(__name__)

_SESSION_ERRORS: Final = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)
"""After these errors a full fetch helps, at once."""
_NOT_YET: Final = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH))
"""The errors of a leader that does not know of its election yet."""
FIRST_REST_S: Final = 0.05
"""The first rest after one of these errors."""


class Table(Protocol):
    """The part of `broker.replication.replica_manager.ReplicaManager` that is used here."""

    def wake(self, partition: Partition) -> None:
        """Have parked requests check the partition."""
        ...

    def storage_failed(self, partition: Partition, error: StorageError) -> None:
        """The partition's disk failed."""
        ...


class Followed:
    """One partition as its fetcher knows it."""

    __slots__ = ("lag", "last_epoch", "leader_epoch", "offset", "partition", "rest_s", "rests")

    def __init__(self, partition: Partition, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        """The epoch in which it follows."""
        self.offset: int | None = None
        """The offset of its next fetch, which is its log's end; None if it is new."""
        self.last_epoch = -1
        """Epoch of the record before `offset`."""
        self.lag: int | None = None
        """How far it is behind the leader's high watermark; None before the first answer."""
        self.rests = False
        self.rest_s = FIRST_REST_S
        """How long it rests next time if its leader does not know of its role yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The parts and values that all fetchers of a broker share."""

    connect: Callable[[int, int], Peer | None]
    """Makes a connection to a leader for a fetcher; None while the image does not know it."""
    broker_id: int
    broker_epoch: Callable[[], int]
    table: Table
    clock: Clock
    failed: Callable[[Partition, str], None]
    """Called with a partition that is not copied any more, and why."""
    throttle: ReplicationThrottle | None = None


class ReplicaFetcher:
    """Copies partitions from one leader. Event loop only."""

    def __init__(
        self, leader: int, number: int, around: Surroundings, settings: FetchingSettings
    ) -> None:
        self.leader = leader
        self.number = number
        self.settings = settings
        self.followed: dict[TopicPartition, Followed] = {}
        self._around = around
        self._table = around.table
        self._clock = around.clock
        self._throttle = around.throttle
        self._session = ClientSession()
        self._endpoint: LeaderEndpoint | None = None
        self._changed: dict[TopicPartition, None] = {}
        """Partitions for which the session may have to say something new."""
        self._resting: dict[TopicPartition, float] = {}
        """Partitions that rest, and until when (monotonic seconds)."""
        self._names: dict[bytes, str] = {}
        """Topics by id."""
        self._woken: Signal[None] = Signal()
        self._logging_limit = LoggingLimit(around.clock)
        self._notices = Notices()
        self._requests = 0
        self._bytes = 0

    def __repr__(self) -> str:
        return f"ReplicaFetcher({self.leader}, {self.number})"

    # ------------------------------------------------------------------ what is copied

    def follow(self, partition: Partition, leader_epoch: int) -> None:
        """Copy `partition` from now on; nothing changes if it is copied in this epoch already."""
        tp = partition.topic_partition
        known = self.followed.get(tp)
        if (
            known is not None
            and known.partition is partition
            and known.leader_epoch == leader_epoch
        ):
            return
        self.followed[tp] = Followed(partition, leader_epoch)
        if partition.topic_id != ZERO_UUID:
            self._names[partition.topic_id] = tp.topic
        self._resting.pop(tp, None)
        self._changed[tp] = None
        self._woken.fire()

    def unfollow(self, tp: TopicPartition) -> None:
        """Copy it no longer."""
        if self.followed.pop(tp, None) is not None:
            self._resting.pop(tp, None)
            self._changed[tp] = None
            self._woken.fire()

    def statistics(self) -> FetcherStatistics:
        """The numbers of this fetcher."""
        return FetcherStatistics(
            leader=self.leader,
            number=self.number,
            requests=self._requests,
            bytes=self._bytes,
            lags={
                tp: -1 if followed.lag is None else followed.lag
                for tp, followed in self.followed.items()
            },
        )

    # ------------------------------------------------------------------ the task

    async def run(self) -> None:
        """Copy until nothing is left to copy."""
        try:
            while self.followed:
                self._woken = Signal()
                await self._settle_changes()
                if self._session.is_idle:
                    await self._wait_for_work()
                    continue
                try:
                    await self._round()
                except (PeerError, KafkaError) as error:
                    self._unreachable(error)
                    await self._woken.within(self.settings.backoff_s)
                await PAUSE
        finally:
            self._notices.tell()
            self._disconnect()

    async def _wait_for_work(self) -> None:
        until = min(self._resting.values(), default=None)
        if self._throttle is not None and self._throttle.is_limited:
            await self._woken.within(self.settings.backoff_s)
        elif until is None:
            await self._woken
        else:
            await self._woken.within(max(until - self._clock.monotonic(), 0))

    async def _settle_changes(self) -> None:
        """Bring the session up to date: end rests, begin new partitions; log the notices."""
        if self._throttle is not None and self._throttle.is_limited:
            self._changed.update(dict.fromkeys(self.followed))
        now = self._clock.monotonic()
        for tp, until in list(self._resting.items()):
            if until <= now:
                del self._resting[tp]
                self._changed[tp] = None
                followed = self.followed.get(tp)
                if followed is not None:
                    followed.rests = False
        while self._changed:
            tp = next(iter(self._changed))
            del self._changed[tp]
            followed = self.followed.get(tp)
            if followed is not None and followed.offset is None and not followed.rests:
                await self._begin(tp, followed)
                followed = self.followed.get(tp)
            self._session.want(tp, self._ask(followed))
            await PAUSE
        self._notices.tell()

    def _ask(self, followed: Followed | None) -> Ask | None:
        if followed is None or followed.offset is None or followed.rests:
            return None
        partition, throttle = followed.partition, self._throttle
        if (
            throttle is not None
            and followed.lag != 0
            and throttle.is_exceeded
            and throttle.holds_for(partition)
        ):
            return None
        return Ask(
            partition.topic_id,
            followed.offset,
            partition.log.log_start_offset,
            followed.leader_epoch,
            followed.last_epoch,
        )

    async def _begin(self, tp: TopicPartition, followed: Followed) -> None:
        try:
            offset, last_epoch = await copying.beginning(followed.partition, followed.leader_epoch)
        except Superseded:
            return
        except (KafkaError, RecordsError) as error:
            self._log_failed(tp, followed, error)
            return
        followed.offset, followed.last_epoch = offset, last_epoch

    def _disconnect(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None
        self._session.start_over()

    def _unreachable(self, error: Exception) -> None:
        events = self._logging_limit.count_event()
        if events:
            logger.warning(
                "Broker %d cannot be fetched from (%d times): %s", self.leader, events, error
            )
        self._disconnect()

    # ------------------------------------------------------------------ one fetch

    async def _round(self) -> None:
        """Fetch once and carry out the answer. Raises PeerError, KafkaError if there is none."""
        endpoint = self._endpoint
        if endpoint is None:
            around = self._around
            peer = around.connect(self.leader, self.number)
            if peer is None:
                raise PeerError(f"broker {self.leader} is not known yet")
            endpoint = self._endpoint = LeaderEndpoint(
                peer, broker_id=around.broker_id, broker_epoch=around.broker_epoch
            )
        plan = self._session.plan()
        self._requests += 1
        response = await endpoint.fetch(plan, self.settings)
        if not self._session.answered(response.error_code, response.session_id):
            if response.error_code not in _SESSION_ERRORS:
                raise KafkaError(ErrorCode(response.error_code), "a fetch was refused")
            return
        out_of_range = await self._process(response)
        for tp, followed in out_of_range:
            await self._restart(endpoint, tp, followed)

    async def _process(self, response: FetchResponse) -> list[tuple[TopicPartition, Followed]]:
        """Carry out the answers; return the partitions whose offset is out of range."""
        out_of_range = []
        for topic in response.responses:
            name = topic.topic or self._names.get(topic.topic_id)
            if name is None:
                continue
            for data in topic.partitions:
                tp = TopicPartition(name, data.partition_index)
                followed = self._expecting(tp)
                if followed is None:
                    self._session.start_over()
                    continue
                step = step_for(data.error_code, diverges=data.diverging_epoch.epoch >= 0)
                if step is FetcherStep.RESTART:
                    out_of_range.append((tp, followed))
                    continue
                try:
                    await self._carry_out(step, tp, followed, data)
                except Superseded:  # follow or unfollow was called meanwhile
                    self._session.start_over()
                except Moved:
                    logger.warning("%s was not fetched from where its log ends; begun anew", tp)
                    followed.offset = None
                    self._changed[tp] = None
                    self._session.start_over()
                except (KafkaError, RecordsError) as error:
                    self._log_failed(tp, followed, error)
                await PAUSE
        return out_of_range

    def _expecting(self, tp: TopicPartition) -> Followed | None:
        """The partition, if an answer counts for it."""
        followed, asked = self.followed.get(tp), self._session.asked(tp)
        if (
            followed is None
            or asked is None
            or followed.rests
            or followed.offset != asked.fetch_offset
            or followed.leader_epoch != asked.leader_epoch
        ):
            return None
        return followed

    async def _carry_out(
        self, step: FetcherStep, tp: TopicPartition, followed: Followed, data: PartitionData
    ) -> None:
        if step is FetcherStep.APPEND:
            await self._append(tp, followed, data)
        elif step is FetcherStep.TRUNCATE:
            end = data.diverging_epoch
            answer = EpochEnd(end.epoch, end.end_offset)
            await self._truncate(
                tp, followed, lambda log: truncation_for(answer, log, replicated=log.high_watermark)
            )
        elif step is FetcherStep.FAIL:
            self._fenced(tp, followed)
        else:
            self._retry_later(tp, followed, ErrorCode(data.error_code).name, data.error_code)

    async def _append(self, tp: TopicPartition, followed: Followed, data: PartitionData) -> None:
        partition, offset = followed.partition, followed.offset
        assert offset is not None
        records: Any = data.records  # a view of the received frame
        if records is not None and len(records):
            info = await append_copied(
                partition, records, leader_epoch=followed.leader_epoch, offset=offset
            )
            if info is not None:
                followed.offset = info.last_offset + 1
                if info.leader_epoch >= 0:
                    followed.last_epoch = info.leader_epoch
                self._bytes += info.valid_bytes
                throttle = self._throttle
                if throttle is not None and throttle.holds_for(partition):
                    throttle.record(info.valid_bytes)
        copying.expect_following(partition, followed.leader_epoch)
        moved = take_marks(
            partition, high_watermark=data.high_watermark, log_start=data.log_start_offset
        )
        followed.lag = max(data.high_watermark - followed.offset, 0)  # type: ignore[operator]
        followed.rest_s = FIRST_REST_S
        self._changed[tp] = None
        if moved:
            self._table.wake(partition)

    async def _truncate(
        self, tp: TopicPartition, followed: Followed, decide: Callable[[Log], Truncation]
    ) -> None:
        partition = followed.partition
        before = partition.log.high_watermark
        done = await copying.truncate(partition, decide, followed.leader_epoch)
        if done.changes_log:
            tell = logger.warning if done.offset < before else logger.info
            tell(
                "%s was truncated to %d (%s), its high watermark was %d",
                tp,
                done.offset,
                done.reason.name,
                before,
            )
        log = partition.log
        latest = log.leader_epochs.latest_epoch
        asked = followed.offset, followed.last_epoch
        followed.offset = log.log_end_offset
        followed.last_epoch = -1 if latest is None else latest
        if asked == (followed.offset, followed.last_epoch):
            # The same question would get the same answer: do not ask it without a pause.
            self._retry_later(tp, followed, "the leader's answer changed nothing")
        self._changed[tp] = None
        self._session.start_over()  # the high watermark of this answer was not taken over

    async def _restart(
        self, endpoint: LeaderEndpoint, tp: TopicPartition, followed: Followed
    ) -> None:
        """Find out where to go on after an offset out of range. Raises PeerError."""
        if self.followed.get(tp) is not followed:
            return
        try:
            start, end = await endpoint.ends(tp, followed.leader_epoch, self.settings.timeout_s)
        except KafkaError as error:
            if self.followed.get(tp) is not followed:
                return
            if error.code == ErrorCode.FENCED_LEADER_EPOCH:
                self._fenced(tp, followed)
            else:
                self._retry_later(tp, followed, error.code.name, error.code)
            return
        if self.followed.get(tp) is not followed:
            return
        logger.info("%s is out of its leader's range, %d to %d", tp, start, end)
        try:
            await self._truncate(
                tp,
                followed,
                lambda log: restart(own_end=log.log_end_offset, leader_start=start, leader_end=end),
            )
        except Superseded:
            pass
        except (KafkaError, RecordsError) as error:
            self._log_failed(tp, followed, error)

    # ------------------------------------------------------------------ errors of one partition

    def _log_failed(
        self, tp: TopicPartition, followed: Followed, error: KafkaError | RecordsError
    ) -> None:
        """Its log could not be changed: rest, give it up, or take its disk offline."""
        if self.followed.get(tp) is not followed:
            return
        if isinstance(error, StorageError):
            self._table.storage_failed(followed.partition, error)  # which unfollows
            if isinstance(error, OutOfResources):
                self._retry_later(tp, followed, str(error))
            return
        passing = isinstance(error, RecordsError) or error.code in (
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.OFFSET_NOT_AVAILABLE,  # an index is being repaired
        )
        if passing:
            logger.error("%s cannot be copied from broker %d now: %s", tp, self.leader, error)
            self._retry_later(tp, followed, str(error))
        else:
            logger.error("%s is not copied any more until the controller tells anew: %s", tp, error)
            self._fail(tp, followed, str(error))

    def _retry_later(
        self, tp: TopicPartition, followed: Followed, why: str, code: int = ErrorCode.NONE
    ) -> None:
        self._notices.add(
            tp, code, f"are not fetched from broker {self.leader} for a while ({why})"
        )
        rest_s = self.settings.backoff_s
        if code in _NOT_YET and followed.rest_s < rest_s:
            rest_s = followed.rest_s
            followed.rest_s *= 2
        followed.rests = True
        self._resting[tp] = self._clock.monotonic() + rest_s
        self._changed[tp] = None

    def _fenced(self, tp: TopicPartition, followed: Followed) -> None:
        """Fail a partition whose leader is in a newer epoch, which the controller will send."""
        self._notices.add(
            tp,
            ErrorCode.FENCED_LEADER_EPOCH,
            f"are in an older epoch than their leader, broker {self.leader}, and await the "
            "controller's word",
        )
        self._fail(tp, followed, f"leader epoch {followed.leader_epoch} is fenced")

    def _fail(self, tp: TopicPartition, followed: Followed, why: str) -> None:
        self.unfollow(tp)
        self._around.failed(followed.partition, why)
