"""One broker of a cluster is its controller: elected, serving, resigning.

* Elected: the broker makes the ephemeral node /controller, and raises /controller_epoch in the same
  change. A broker that finds the node there waits until it goes.
* Serving: a `Term` reads everything and answers for the cluster, one event after the other. Each of
  its writes holds only if nobody was elected since (`fenced_store`).
* Resigning, for one of: the session with the store has ended; another broker is in /controller; a
  write was fenced; a broker has seen a later controller; the term could not begin. The queued
  events are refused NOT_CONTROLLER or dropped.

`broker.membership.registration` registers the broker, and in a new session calls `session_began`
afterwards.

Others use `is_active`, `controller_id`, `epoch`, `epoch_version` (to fence their writes by
`Check`), and `requests`.

Source: `KafkaController` (3.9); decision 105 has the differences.
"""

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Final

from broker.cluster.controller_statistics import ControllerStatistics
from broker.cluster.metadata_store import (
    MetadataStore,
    MetadataStoreError,
    NodeChange,
    NodeEvent,
    Watcher,
)
from broker.cluster.tree_values import (
    BROKER_IDS,
    CONTROLLER,
    DELETE_TOPICS,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    TOPICS,
)
from broker.controller.channels import Begin, Channels
from broker.controller.controller_requests import ControllerRequests
from broker.controller.controller_tree import ControllerTree
from broker.controller.events import ControllerActivity, ControllerEvent, EventQueue
from broker.controller.fenced_store import NO_CONTROLLER, ControllerMoved, FencedStore
from broker.controller.request_batch import Outgoing
from broker.controller.settings import ControllerSettings
from broker.controller.statistics import ClusterControllerStatistics, counted
from broker.controller.term import Term
from broker.deadlines import Deadlines, Handle
from broker.peers.peer import Peer
from broker.world.uuids import NewUuid
from config.listener import Listener
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrResponse
from protocol.messages.stop_replica import StopReplicaResponse
from protocol.messages.update_metadata import UpdateMetadataResponse
from protocol.schema import Message
from storage.clock import Clock
from storage.waits import Work, sleep

log = logging.getLogger(__name__)

FIRST_BALANCE_S: Final = 5
"""Until leaders are balanced for the first time in a term."""
_AFTER_FAILED_TERM_S: Final = 1.0
"""Before the node is left to others when a term could not begin: they may fail likewise."""


class ClusterController:
    """See the module. Event loop only."""

    def __init__(
        self,
        *,
        store: MetadataStore,
        settings: ControllerSettings,
        connect: Callable[[int, Listener], Peer],
        begin: Begin,
        clock: Clock,
        deadlines: Deadlines,
        new_uuid: NewUuid,
    ) -> None:
        """`connect` makes a connection to a broker; `begin` has work done beside the other."""
        self.settings = settings
        self.controller_id = NO_CONTROLLER
        """The broker that is the controller as far as known here; -1: none."""
        self.is_registered: Callable[[], bool] = lambda: True
        """Whether this broker's node is there: without it, it is not elected."""
        self._store = store
        self._clock = clock
        self._deadlines = deadlines
        self._new_uuid = new_uuid
        self._fenced = FencedStore(store, settings.broker_id, clock.wall_ms)
        self._channels = Channels(connect, clock, begin)
        self._events = EventQueue(clock)
        self._term: Term | None = None
        self.requests = ControllerRequests(self._events, lambda: self._term)
        self._session_lives = True
        self._leaving = False
        """Whether this broker stops, and takes part in no election any more."""
        self._unwatch: list[Callable[[], None]] = []
        self._balancing: Handle | None = None
        self._unclean_before = 0
        """Unclean elections of the terms that are over."""

    # ------------------------------------------------------------------ seen from outside

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller."""
        return self._term is not None

    @property
    def epoch(self) -> int:
        """The epoch of this broker's term; 0 if it is not the controller."""
        return self._fenced.epoch if self._term is not None else 0

    @property
    def epoch_version(self) -> int:
        """The version that /controller_epoch has while this broker is the controller."""
        return self._fenced.epoch_version

    def reconfigure(self, settings: ControllerSettings) -> None:
        """Settings have changed while the broker runs."""
        before, self.settings = self.settings, settings
        if settings.unclean_leader_election_enable and not before.unclean_leader_election_enable:
            self.unclean_elections_allowed()

    # ------------------------------------------------------------------ life

    async def run(self) -> None:
        """Take part in elections, and serve while elected, until ended."""
        unwatch = self._store.watch(CONTROLLER, self._elect_soon)
        self._elect_soon()
        try:
            await self._events.run(self._guarded)
        finally:
            unwatch()
            self._events.clear()
            self._drop_term()

    async def step_down(self) -> None:
        """Resign, and let another one be elected: before an orderly stop of this broker."""
        self._leaving = True
        if self._term is not None:
            self._drop_term()
            self.controller_id = NO_CONTROLLER
            await self._fenced.resign()

    def session_ended(self) -> None:
        """The session with the store is over: the ephemeral nodes are gone."""
        self._session_lives = False
        self._fenced.alive = lambda: False
        self._events.clear()
        self.controller_id = NO_CONTROLLER
        # At once, so that nothing of the term is seen or answered any more; an event that is under
        # way meets `ControllerMoved` at its next operation.
        self._drop_term()

    def session_began(self) -> None:
        """This broker is registered in a new session.

        A registration that is repeated in the same session changes nothing, because an election or
        a term of that session may be under way.
        """
        if not self._session_lives:
            self._session_lives = True
            self._fenced = FencedStore(self._store, self.settings.broker_id, self._clock.wall_ms)
        self._elect_soon()

    def _elect_soon(self, _: Sequence[NodeEvent] = ()) -> None:
        """Look who is the controller, in its turn: at the beginning, or /controller has changed."""
        self._events.put(
            ControllerEvent(ControllerActivity.CONTROLLER_CHANGE, self._look_and_elect, "elect")
        )

    async def _guarded(self, event: ControllerEvent) -> None:
        """Handle an event, and what may go wrong with it."""
        try:
            await event.handle()
        except ControllerMoved as moved:
            event.preempt()
            log.info("Controller moved while it handled %s: %s", event.activity.name, moved)
            self._drop_term()  # also one that this event began
            self._elect_soon()
        except MetadataStoreError as error:
            event.preempt()
            log.error("Error processing event %s: %s", event.activity.name, error)

    # ------------------------------------------------------------------ elections

    async def _look(self) -> None:
        """Read who is the controller; resign if it is another one."""
        self.controller_id = await self._fenced.controller_id()
        if self.controller_id != self.settings.broker_id:
            self._drop_term()

    async def _look_and_elect(self) -> None:
        if not self._session_lives:
            return
        await self._look()
        if self._term is not None or self._leaving or not self.is_registered():
            return
        if self.controller_id == self.settings.broker_id:
            await self._fenced.abandon()  # the node of a term that was dropped
            return
        if self.controller_id != NO_CONTROLLER:
            log.debug("Broker %d is the controller", self.controller_id)
            return
        try:
            await self._fenced.elect()
        except ControllerMoved:
            await self._look()
            return
        self.controller_id = self.settings.broker_id
        log.info(
            "%d successfully elected as the controller. Epoch incremented to %d and epoch zk "
            "version is now %d",
            self.settings.broker_id,
            self._fenced.epoch,
            self._fenced.epoch_version,
        )
        try:
            await self._begin_term()
        except MetadataStoreError as error:
            log.error("Cannot become the controller, leaving it to others: %s", error)
            self._drop_term()
            await sleep(_AFTER_FAILED_TERM_S)
            self.controller_id = NO_CONTROLLER
            await self._fenced.resign()

    async def _begin_term(self) -> None:
        term = self._term = Term(
            tree=ControllerTree(self._fenced),
            channels=self._channels,
            answered=self._answered,
            settings=lambda: self.settings,
            new_uuid=self._new_uuid,
        )
        self._watch_all()  # before it reads, so that no change is missed
        await term.begin()
        if term is self._term and self.settings.auto_leader_rebalance_enable:
            self._balance_in(FIRST_BALANCE_S)

    def _drop_term(self) -> None:
        """End the term, if there is one. Does not wait."""
        term, self._term = self._term, None
        if term is None:
            return
        self._unclean_before += term.partitions.unclean
        for unwatch in self._unwatch:
            unwatch()
        self._unwatch.clear()
        if self._balancing is not None:
            self._balancing.cancel()
        self._channels.close_all()
        log.info("Resigned")

    # ------------------------------------------------------------------ changes of the tree

    def _watch_all(self) -> None:
        for path, activity, handle in (
            (BROKER_IDS, ControllerActivity.BROKER_CHANGE, Term.brokers_changed),
            (DELETE_TOPICS, ControllerActivity.TOPIC_DELETION, Term.deletions_asked),
            (ISR_CHANGES, ControllerActivity.ISR_CHANGE, Term.isr_changes_noted),
            (LOG_DIR_EVENTS, ControllerActivity.LOG_DIR_CHANGE, Term.log_dir_events_noted),
            (
                PREFERRED_ELECTION,
                ControllerActivity.MANUAL_LEADER_BALANCE,
                lambda term: term.elections.ask_by_tree(),
            ),
            (
                REASSIGN_PARTITIONS,
                ControllerActivity.ALTER_PARTITION_REASSIGNMENT,
                lambda term: term.reassignments.ask_by_tree(),
            ),
        ):
            self._unwatch.append(self._store.watch(path, self._watcher(path, activity, handle)))
        self._unwatch.append(self._store.watch(TOPICS, self._topics_changed))

    def _watcher(
        self, path: str, activity: ControllerActivity, handle: Callable[[Term], Work[None]]
    ) -> Watcher:
        appears = path in (PREFERRED_ELECTION, REASSIGN_PARTITIONS)

        def watcher(events: Sequence[NodeEvent]) -> None:
            # This broker changes the node itself, for each partition that is done.
            if appears and all(event.change is not NodeChange.CREATED for event in events):
                return
            self._put(activity, handle, path)

        return watcher

    def _topics_changed(self, events: Sequence[NodeEvent]) -> None:
        """Topics came or went; or their nodes have changed, which adds partitions."""
        start = len(TOPICS) + 1
        changed: dict[str, None] = {}
        for event in events:
            name = event.path[start:]
            if "/" in name or not name:
                continue  # of a partition: the store may tell of these too
            if event.change is NodeChange.CHANGED:
                changed[name] = None
            else:
                self._put(ControllerActivity.TOPIC_CHANGE, Term.topics_changed, TOPICS)
        for name in changed:
            self._put(
                ControllerActivity.TOPIC_CHANGE,
                lambda term, name=name: term.topic_nodes_changed((name,)),  # type: ignore[misc]
                (TOPICS, name),
            )

    def _put(
        self,
        activity: ControllerActivity,
        handle: Callable[[Term], Work[None]],
        key: Hashable = None,
    ) -> None:
        """Queue an event of this term: it is dropped if the term is over when its turn comes.

        So an event of the last term does not stand for one of this term.
        """
        term = self._term

        async def run() -> None:
            if term is not None and term is self._term:
                await handle(term)

        self._events.put(ControllerEvent(activity, run, None if key is None else (id(term), key)))

    # ------------------------------------------------------------------ answers of brokers

    def _answered(self, outgoing: Outgoing, answer: Message) -> None:
        broker_id = outgoing.broker_id
        match answer:
            case LeaderAndIsrResponse() | UpdateMetadataResponse() | StopReplicaResponse():
                code = answer.error_code
            case _:
                return
        if code != ErrorCode.NONE:
            log.error("Broker %d answers %s with error %d", broker_id, outgoing.key.name, code)
        if code == ErrorCode.STALE_CONTROLLER_EPOCH:
            self._put(ControllerActivity.CONTROLLER_CHANGE, self._check_epoch, "check epoch")
        if isinstance(answer, LeaderAndIsrResponse) and code == ErrorCode.NONE:
            self._put(
                ControllerActivity.LEADER_AND_ISR_RESPONSE_RECEIVED,
                lambda term: term.leadership_answered(broker_id, answer),
            )
        elif isinstance(answer, StopReplicaResponse) and outgoing.deletes:
            self._put(
                ControllerActivity.TOPIC_DELETION,
                lambda term: term.deletion_answered(broker_id, outgoing.deletes, answer),
            )

    async def _check_epoch(self, _: Term) -> None:
        """A broker knows a later controller: is there one?"""
        await self._look()
        if self._term is not None and not await self._fenced.is_epoch_current():
            raise ControllerMoved("a broker has seen a later controller")

    # ------------------------------------------------------------------ timers and settings

    def _balance_in(self, seconds: float) -> None:
        self._balancing = self._deadlines.schedule(
            seconds,
            lambda: self._put(ControllerActivity.AUTO_LEADER_BALANCE, self._balance, "balance"),
        )

    async def _balance(self, term: Term) -> None:
        try:
            await term.elections.balance()
        finally:
            if term is self._term:
                self._balance_in(self.settings.leader_imbalance_check_interval_s)

    def unclean_elections_allowed(self, topic: str | None = None) -> None:
        """Unclean elections have just been allowed, for one topic or by default: elect now."""
        activity = (
            ControllerActivity.UNCLEAN_LEADER_ELECTION_ENABLE
            if topic is None
            else ControllerActivity.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE
        )

        async def elect(term: Term) -> None:
            await term.partitions.elect_where_needed(topic)

        self._put(activity, elect)

    # ------------------------------------------------------------------ numbers

    def statistics(self) -> ClusterControllerStatistics:
        """A snapshot for metrics."""
        return counted(
            None if self._term is None else self._term.state,
            self._unclean_before + (0 if self._term is None else self._term.partitions.unclean),
            self._events.statistics(),
            self._channels.statistics(),
        )

    async def gauges(self) -> ControllerStatistics:
        """The part of the statistics that a broker has which stands alone, too."""
        return self.statistics().gauges
