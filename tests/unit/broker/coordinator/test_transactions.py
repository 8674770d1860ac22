"""The transaction coordinator on virtual time (S-TXN-4 to S-TXN-7)."""

import pytest

from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.records import encode_key
from broker.coordinator.transaction.settings import TransactionSettings
from broker.coordinator.transaction.state import (
    LAST_EPOCH,
    TransactionState,
)
from broker.world.in_turn import begin
from config.broker_config import BrokerConfig
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from tests.support.refusals import code_of
from tests.support.transaction_harness import T0, T1, TIMEOUT_MS, TransactionHarness

S = TransactionState
OFFSETS = TopicPartition("__consumer_offsets", 7)


# ---- InitProducerId


def test_s_txn_4_an_id_belongs_to_the_partition_of_its_hash(broker: TransactionHarness) -> None:
    partition_for = broker.coordinator.partition_for
    assert partition_for("hello") == 22
    assert partition_for("polygenelubricants") == 0  # Java's hash of it is the smallest int.
    # The topic's own count holds; transaction.state.log.num.partitions is for a new topic only.
    broker.coordinator.startup(partition_count=7)
    assert partition_for("hello") == 99_162_322 % 7


def test_s_txn_4_a_new_id_has_epoch_0_and_each_owner_the_next(broker: TransactionHarness) -> None:
    assert broker.init() == (ErrorCode.NONE, 1000, 0)
    assert broker.init() == (ErrorCode.NONE, 1000, 1)
    assert broker.init("other") == (ErrorCode.NONE, 1001, 0)
    assert broker.state() is S.EMPTY


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_s_txn_4_timeouts_out_of_range(broker: TransactionHarness, timeout_ms: int) -> None:
    assert broker.init(timeout_ms=timeout_ms).code is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    for allowed in (1, 900_000):
        assert broker.init(timeout_ms=allowed).code is ErrorCode.NONE


def test_settings_that_are_not_given_are_kafkas() -> None:
    assert TransactionSettings() == TransactionSettings.from_config(BrokerConfig.parse({}))


def test_an_empty_id_is_invalid(broker: TransactionHarness) -> None:
    assert broker.init("").code is ErrorCode.INVALID_REQUEST
    assert broker.add(Producer(1, 0), T0, transactional_id="") is ErrorCode.INVALID_REQUEST
    assert broker.end(Producer(1, 0), transactional_id="").code is ErrorCode.INVALID_REQUEST


def test_kip_360_the_owner_goes_on_and_may_ask_twice(broker: TransactionHarness) -> None:
    owner = broker.owner()
    assert broker.init(expected=owner) == (0, 1000, 1)
    assert broker.init(expected=owner) == (0, 1000, 1)  # The answer was lost.
    broker.init()
    assert broker.init(expected=owner).code is ErrorCode.PRODUCER_FENCED
    assert broker.init(expected=Producer(5, 0)).code is ErrorCode.PRODUCER_FENCED


def test_kip_360_an_id_that_expired_meanwhile_is_made_anew(broker: TransactionHarness) -> None:
    assert broker.init(expected=Producer(5, 9)) == (0, 1000, 0)


def test_s_txn_4_an_exhausted_epoch_means_a_new_producer_id(broker: TransactionHarness) -> None:
    last = broker.owner_at(LAST_EPOCH - 1)
    assert broker.init() == (0, 1000, 0)
    last = broker.owner_at(LAST_EPOCH - 1)
    assert broker.init(expected=last) == (0, 1001, 0)
    assert broker.init(expected=last) == (0, 1001, 0)  # The answer was lost.
    assert broker.init(expected=last) == (0, 1001, 0)
    stranger = Producer(5, last.producer_epoch)
    assert broker.init(expected=stranger).code is ErrorCode.PRODUCER_FENCED


def test_s_txn_4_a_new_owner_aborts_what_the_old_one_left_open(broker: TransactionHarness) -> None:
    zombie = broker.opened(T0, T1)
    broker.markers.hold = True
    assert broker.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.state() is S.PREPARE_ABORT
    assert broker.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    broker.markers.release()
    assert [(tp, m.producer_epoch, m.commit) for tp, m in broker.markers.written] == [
        (T0, 1, False),
        (T1, 1, False),
    ]
    assert broker.init() == (0, 1000, 2)
    assert broker.end(zombie).code is ErrorCode.PRODUCER_FENCED
    assert broker.add(zombie, T0) is ErrorCode.PRODUCER_FENCED


def test_s_txn_4_fencing_the_last_epoch(broker: TransactionHarness) -> None:
    zombie = broker.owner_at(LAST_EPOCH - 1)
    broker.add(zombie, T0)
    assert broker.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    _, marker = broker.markers.written[0]
    assert (marker.producer_id, marker.producer_epoch) == (zombie.producer_id, LAST_EPOCH)
    assert broker.end(zombie).code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert broker.init() == (0, 1000, 1)


def test_s_txn_4_a_fence_that_cannot_be_written_raises_the_epoch_once(
    broker: TransactionHarness,
) -> None:
    zombie = broker.opened(T0)
    broker.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    for _ in range(3):
        assert broker.init().code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert broker.value().producer_epoch == 1
    assert broker.end(zombie).code is ErrorCode.PRODUCER_FENCED
    broker.log.fail_with = ErrorCode.NONE
    assert broker.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.init() == (0, 1000, 2)


@pytest.mark.parametrize("before", [True, False])
def test_before_the_start_and_after_the_stop_nothing_is_served(
    broker: TransactionHarness, before: bool
) -> None:
    broker.owner()
    if before:
        broker.coordinator = TransactionCoordinator(
            TransactionSettings(),
            broker.log,
            broker.markers,
            broker.deadlines,
            broker.clock,
            broker.ids,
        )
        broker.coordinator.on_elected(broker.coordinator.partition_for("id"), 1)
    else:
        broker.coordinator.shutdown()
        assert broker.deadlines.next_deadline() is None
    assert broker.init().code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code_of(broker.coordinator.list_transactions) is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", [0, 2])
def test_kip_360_the_owner_of_an_open_transaction_goes_on_when_it_asks_again(
    broker: TransactionHarness, version: int
) -> None:
    owner = broker.owner()
    broker.add(owner, T0, version=version)
    broker.markers.hold = True
    for _ in range(2):
        assert broker.init(expected=owner).code is ErrorCode.CONCURRENT_TRANSACTIONS
    broker.markers.release()
    assert broker.init(expected=owner) == (0, 1000, 1)
    assert broker.init(expected=owner) == (0, 1000, 1)  # The answer was lost.
    assert broker.add(owner, T0, version=version) is ErrorCode.PRODUCER_FENCED
    assert broker.add(Producer(1000, 1), T0, version=version) is ErrorCode.NONE


def test_kip_360_a_fence_that_could_not_be_written_knows_its_owner(
    broker: TransactionHarness,
) -> None:
    owner = broker.opened(T0)
    broker.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    for _ in range(2):
        assert broker.init(expected=owner).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.log.fail_with = ErrorCode.NONE
    assert broker.init(expected=owner).code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.init(expected=owner) == (0, 1000, 1)


def test_kip_360_the_owner_of_the_last_epoch_but_one_goes_on_with_another_id(
    broker: TransactionHarness,
) -> None:
    owner = broker.owner_at(LAST_EPOCH - 1)
    broker.add(owner, T0)
    assert broker.init(expected=owner).code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.init(expected=owner) == (0, 1000, 0)
    assert broker.init(expected=owner) == (0, 1000, 0)  # The answer was lost.


# ---- AddPartitionsToTxn


def test_s_txn_4_partitions_are_added_and_start_the_transaction(broker: TransactionHarness) -> None:
    owner = broker.owner()
    assert broker.add(owner, T0) is ErrorCode.NONE
    start = broker.value().start_ms
    broker.advance_ms(10)
    assert broker.add(owner, T1, OFFSETS) is ErrorCode.NONE
    value = broker.value()
    assert value.partitions == {T0, T1, OFFSETS}
    assert (value.state, value.start_ms) == (S.ONGOING, start)
    assert broker.statistics().transactional_ids["Ongoing"] == 1
    records = len(broker.log.all_records())
    assert broker.add(owner, T0, T1) is ErrorCode.NONE  # Nothing new: nothing is written.
    assert len(broker.log.all_records()) == records


def test_s_txn_4_only_the_owner_may_add_and_not_while_its_transaction_ends(
    broker: TransactionHarness,
) -> None:
    owner = broker.owner()
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert broker.add(owner, T0, transactional_id="unknown") is mapping
    assert broker.add(Producer(5, 0), T0) is mapping
    assert broker.add(Producer(owner.producer_id, 1), T0) is ErrorCode.PRODUCER_FENCED
    broker.add(owner, T0)
    broker.markers.hold = True
    for commit in (True, False):
        broker.end(owner, commit=commit)
        assert broker.add(owner, T0) is ErrorCode.CONCURRENT_TRANSACTIONS
        broker.markers.release()
        assert broker.add(owner, T0) is ErrorCode.NONE
        broker.markers.hold = True


def test_s_txn_4_while_a_record_is_written_nothing_else_may_change(
    broker: TransactionHarness,
) -> None:
    owner = broker.owner()
    broker.log.hold = True
    broker.add(owner, T0)
    assert broker.add(owner, T1) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.end(owner).code is ErrorCode.CONCURRENT_TRANSACTIONS
    broker.log.release()
    assert broker.value().partitions == {T0}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_s_txn_4_a_write_that_fails_changes_nothing(
    broker: TransactionHarness, code: ErrorCode, told: ErrorCode
) -> None:
    owner = broker.opened(T0)
    broker.log.fail_with = code
    assert broker.add(owner, T1) is told
    assert broker.end(owner).code is told
    assert broker.init("new").code is told
    broker.log.fail_with = ErrorCode.NONE
    assert broker.value().partitions == {T0}
    assert "new" not in broker.shard("new").transactions
    assert broker.state() is S.ONGOING
    broker.add(owner, T1)
    assert broker.markers.written == []
    assert broker.end(owner, commit=False).code is ErrorCode.NONE
    assert broker.state() is S.COMPLETE_ABORT


def test_s_txn_7_verification(broker: TransactionHarness) -> None:
    owner = broker.opened(T0)
    assert broker.verify(owner, T0) is ErrorCode.NONE
    assert broker.verify(owner, T1) is ErrorCode.TRANSACTION_ABORTABLE
    assert broker.verify(Producer(owner.producer_id, 9), T0) is ErrorCode.PRODUCER_FENCED
    assert broker.verify(Producer(5, 0), T0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    broker.markers.hold = True
    broker.end(owner)
    assert broker.verify(owner, T0) is ErrorCode.CONCURRENT_TRANSACTIONS
    broker.markers.release()
    assert broker.verify(owner, T0) is ErrorCode.TRANSACTION_ABORTABLE


# ---- EndTxn


@pytest.mark.parametrize("commit", [True, False])
def test_s_txn_4_end_is_answered_when_decided_and_completed_by_markers(
    broker: TransactionHarness, commit: bool
) -> None:
    owner = broker.opened(T0, T1)
    broker.markers.hold = True
    assert broker.end(owner, commit=commit).code is ErrorCode.NONE
    assert broker.state() is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT)
    assert broker.end(owner, commit=commit).code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.end(owner, commit=not commit).code is ErrorCode.INVALID_TXN_STATE
    broker.markers.release()
    assert broker.state() is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    assert {tp for tp, marker in broker.markers.written} == {T0, T1}
    assert all(marker.commit is commit for _, marker in broker.markers.written)
    assert broker.end(owner, commit=commit).code is ErrorCode.NONE
    assert broker.end(owner, commit=not commit).code is ErrorCode.INVALID_TXN_STATE


def test_s_txn_4_only_the_owner_may_end_the_transaction(broker: TransactionHarness) -> None:
    owner = broker.owner()
    assert broker.end(owner).code is ErrorCode.INVALID_TXN_STATE
    broker.add(owner, T0)
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert broker.end(owner, transactional_id="unknown").code is mapping
    assert broker.end(Producer(5, 0)).code is mapping
    for epoch in (-1, 1):
        fenced = Producer(owner.producer_id, epoch)
        assert broker.end(fenced).code is ErrorCode.PRODUCER_FENCED


def test_s_txn_5_markers_that_cannot_be_written_are_tried_again(broker: TransactionHarness) -> None:
    owner = broker.opened(T0, T1, OFFSETS)
    broker.markers.refusals = {
        T1: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        OFFSETS: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
    broker.end(owner)
    broker.advance_ms(1_000)
    assert broker.state() is S.PREPARE_COMMIT
    assert [tp for tp, _ in broker.markers.written] == [T0]
    broker.markers.refusals = {T1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}  # Deleted meanwhile.
    broker.advance_ms(1_000)
    assert broker.state() is S.COMPLETE_COMMIT
    assert [tp for tp, _ in broker.markers.written] == [T0, OFFSETS]


def test_s_txn_5_a_thousand_partitions_take_several_turns(broker: TransactionHarness) -> None:
    owner = broker.owner()
    broker.add(owner, *(TopicPartition("t", index) for index in range(1_000)))
    assert broker.end(owner).code is ErrorCode.NONE
    assert len(broker.markers.written) < 100
    broker.advance_ms(1)
    assert len(broker.markers.written) == len(set(broker.markers.written)) == 1_000
    assert broker.state() is S.COMPLETE_COMMIT


def test_s_txn_2_a_deposed_coordinator_gives_up(broker: TransactionHarness) -> None:
    owner = broker.opened(T0, T1)
    broker.markers.refusals = {T0: ErrorCode.TRANSACTION_COORDINATOR_FENCED}
    broker.end(owner)
    broker.advance_ms(1_000)
    assert broker.state() is S.PREPARE_COMMIT
    assert broker.statistics().markers.transactions == 0


@pytest.mark.parametrize("resigned", [False, True])
def test_a_completion_that_cannot_be_written_is_tried_again_by_the_coordinator_of_the_moment(
    broker: TransactionHarness, resigned: bool
) -> None:
    owner = broker.opened(T0)
    broker.markers.hold = True
    broker.end(owner)
    broker.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    broker.markers.release()
    assert broker.state() is S.PREPARE_COMMIT
    broker.log.fail_with = ErrorCode.NONE
    shard = broker.shard()
    if resigned:
        broker.coordinator.on_resigned(shard.partition)
    written = len(broker.log.all_records())
    broker.advance_ms(200)
    assert len(broker.log.all_records()) == written + (not resigned)
    found = shard.transactions["id"].state
    assert found is (S.PREPARE_COMMIT if resigned else S.COMPLETE_COMMIT)


# ---- timeouts and expiry


def test_s_txn_4_what_outlives_its_timeout_is_aborted(broker: TransactionHarness) -> None:
    owner = broker.opened(T0)
    broker.advance_ms(TIMEOUT_MS)
    assert broker.state() is S.ONGOING, "at its timeout, not beyond it"
    broker.advance_ms(9_900)  # open transactions are looked at every ten seconds
    assert broker.state() is S.ONGOING
    broker.advance_ms(200)
    assert broker.state() is S.COMPLETE_ABORT
    assert broker.markers.written[0][1].producer_epoch == owner.producer_epoch + 1
    assert broker.end(owner).code is ErrorCode.PRODUCER_FENCED
    assert broker.add(owner, T0) is ErrorCode.PRODUCER_FENCED
    assert broker.statistics().counters.timed_out == 1
    # KIP-360: the owner may continue with the epoch that fenced it; a new owner gets the next one.
    assert broker.init(expected=owner) == (0, owner.producer_id, owner.producer_epoch + 1)
    assert broker.init() == (0, owner.producer_id, owner.producer_epoch + 2)
    assert broker.init(expected=owner).code is ErrorCode.PRODUCER_FENCED


def test_s_txn_4_ids_at_rest_expire_with_a_tombstone() -> None:
    broker = TransactionHarness(id_expiration_ms=86_400_000)
    owner = broker.owner("open")
    broker.add(owner, T0, transactional_id="open")
    done = broker.owner("done")
    broker.add(done, T0, transactional_id="done")
    broker.end(done, transactional_id="done")
    broker.owner("empty")
    broker.advance_ms(86_400_000 - 1_000)
    assert "done" in broker.shard("done").transactions
    broker.advance_ms(7_200_000)
    for gone in ("done", "empty"):
        assert gone not in broker.shard(gone).transactions
        last = [r for r in broker.log.all_records() if r.key == encode_key(gone)][-1]
        assert last.value is None
    assert broker.end(done, transactional_id="done").code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert broker.init("done") == (0, 1003, 0)


def test_s_txn_4_an_id_stays_when_its_tombstone_cannot_be_written() -> None:
    broker = TransactionHarness(id_expiration_ms=1_000)
    broker.owner()
    broker.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    broker.advance_ms(3_700_000)
    broker.log.fail_with = ErrorCode.NONE
    assert broker.init() == (0, 1000, 1)


# ---- restart


def test_s_txn_6_an_open_transaction_goes_on_after_a_restart(broker: TransactionHarness) -> None:
    owner = broker.opened(T0)
    before = broker.value()
    after = broker.restarted()
    assert after.value() == before
    assert after.add(owner, T1) is ErrorCode.NONE
    assert after.end(owner).code is ErrorCode.NONE
    assert {tp for tp, _ in after.markers.written} == {T0, T1}


def test_s_txn_6_the_timeout_counts_from_the_transactions_start(broker: TransactionHarness) -> None:
    broker.opened(T0)
    broker.advance_ms(TIMEOUT_MS - 5_000)
    after = broker.restarted()
    after.advance_ms(12_000)
    assert after.state() is S.COMPLETE_ABORT


@pytest.mark.parametrize("commit", [True, False])
def test_s_txn_6_markers_are_sent_again_after_a_restart(
    broker: TransactionHarness, commit: bool
) -> None:
    owner = broker.opened(T0, T1)
    broker.markers.refusals = {T1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert broker.end(owner, commit=commit).code is ErrorCode.NONE
    broker.markers.refusals = {}
    after = broker.restarted()
    assert after.state() is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    assert [(tp, marker.commit) for tp, marker in after.markers.written] == [
        (T0, commit),
        (T0, commit),
        (T1, commit),
    ]
    assert after.end(owner, commit=commit).code is ErrorCode.NONE


def test_s_txn_6_nothing_is_served_while_loading(broker: TransactionHarness) -> None:
    broker.owner()
    after = TransactionHarness(broker.log)
    assert after.init().code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert code_of(after.coordinator.list_transactions) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    after.load()
    assert after.init() == (0, 1000, 1)
    broker.log.led = {}
    elsewhere = TransactionHarness(broker.log)
    assert elsewhere.init().code is ErrorCode.NOT_COORDINATOR


def test_a_deposed_shard_answers_not_coordinator(broker: TransactionHarness) -> None:
    owner = broker.opened(T0)
    broker.log.hold = True
    ended = begin(broker.coordinator.end("id", owner, commit=True, version=0))
    broker.coordinator.on_resigned(broker.coordinator.partition_for("id"))
    broker.log.release()
    assert ended.value.code is ErrorCode.NOT_COORDINATOR
    assert broker.markers.written == []


def test_s_txn_6_producer_ids_of_the_log_are_not_given_again(broker: TransactionHarness) -> None:
    broker.owner("a")
    last = broker.owner_at(LAST_EPOCH - 1)
    broker.markers.hold = True
    broker.add(last, T0, version=2)
    following = broker.end(last, version=2).producer
    after = broker.restarted()
    assert after.ids.used >= {following.producer_id}
    after.load("a")
    assert after.ids.used >= {1000, following.producer_id}


def test_a_topic_made_anew_holds_nothing_of_the_old_one(broker: TransactionHarness) -> None:
    owner = broker.opened(T0)
    broker.markers.hold = True
    broker.end(owner)
    broker.log.drop()
    broker.log.led = {}
    broker.coordinator.on_topics_deleted(["u"])
    assert broker.state() is S.PREPARE_COMMIT
    broker.coordinator.on_topics_deleted(["__transaction_state"])
    assert broker.init().code is ErrorCode.NOT_COORDINATOR
    broker.markers.release()
    broker.log.led = None  # made anew: its leader epochs begin at 0 again
    assert broker.end(owner).code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert broker.init() == (ErrorCode.NONE, 1001, 0)
    assert broker.restarted().init() == (ErrorCode.NONE, 1001, 1)
