"""Produce: one answer per partition, and nothing waits that need not."""

import pytest

from broker.api.produce import TURN_BYTES, ProduceHandler
from broker.coordinator.transaction.gate import TransactionGate
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.batch import read_header
from protocol.records.compression import CompressionType
from protocol.records.errors import InvalidRecord
from protocol.types import TopicPartition
from storage.errors import StorageError
from storage.log.results import AppendInfo
from storage.waits import PAUSE, Call, at_once
from tests.support.begun import begin
from tests.support.broker_bench import Bench, batch, context, led
from tests.support.transaction_harness import TransactionHarness


def request(records, topic="t", *, acks=1, version=9, indexes=(0,), transactional_id=None):
    message = ProduceRequest(
        acks=acks,
        timeout_ms=1500,
        transactional_id=transactional_id,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=index, records=records) for index in indexes
                ],
            )
        ],
    )
    codec = ProduceRequest.codec(version)
    return codec.parse(bytearray(codec.build(message)))


class Asked:
    """A broker and its produce handler; every response goes through its version's codec."""

    def __init__(self, **topic):
        self.bench = Bench()
        self.transactions = TransactionHarness()
        self.partitions = self.bench.topic(**topic) if topic is not None else []
        self.handler = ProduceHandler(
            self.bench.replicas, TransactionGate(self.transactions.coordinator)
        )

    def raw(self, message, version=9, client_id="test"):
        """The reply of the handler."""
        return self.begun(message, version, client_id).reply

    def begun(self, message, version=9, client_id="test"):
        self.ctx = context(version, client_id)
        return begin(self.handler(self.ctx, message))

    def reply(self, message, version=9, client_id="test"):
        return only(through(self.raw(message, version, client_id), version))


@pytest.fixture
def asked():
    return Asked()


def through(response, version):
    codec = ProduceResponse.codec(version)
    return codec.parse(codec.build(response))


def only(response):
    (topic,) = response.responses
    (partition,) = topic.partition_responses
    return partition


@pytest.mark.parametrize("version", range(12))
def test_a_batch_is_appended_and_answered_with_its_offset_in_every_version(asked, version):
    asked.reply(request(batch(), version=version), version)
    reply = asked.reply(request(batch([b"a", b"b"]), version=version), version)
    assert (reply.index, reply.error_code, reply.base_offset) == (0, 0, 1)
    assert reply.log_append_time_ms == -1
    assert reply.log_start_offset == (0 if version >= 5 else -1)
    assert asked.partitions[0].log.log_end_offset == 3


def by_id(*topic_ids, acks=1):
    data = [PartitionProduceData(index=0, records=batch())]
    message = ProduceRequest(
        acks=acks,
        timeout_ms=1500,
        topic_data=[TopicProduceData(topic_id=one, partition_data=data) for one in topic_ids],
    )
    codec = ProduceRequest.codec(13)
    return codec.parse(bytearray(codec.build(message)))


def test_v13_names_topics_by_id_and_is_answered_by_id(asked):
    known, unknown = b"t".ljust(16, b"."), b"u".ljust(16, b".")
    response = through(asked.raw(by_id(unknown, known, bytes(16), known), 13), 13)
    assert [topic.topic_id for topic in response.responses] == [unknown, known, bytes(16), known]
    replies = [topic.partition_responses[0] for topic in response.responses]
    missing = ErrorCode.UNKNOWN_TOPIC_ID
    assert [reply.error_code for reply in replies] == [missing, 0, missing, 0]
    assert [reply.base_offset for reply in replies] == [-1, 0, -1, 1]
    assert asked.partitions[0].log.log_end_offset == 2


def test_v13_a_partition_that_a_topic_does_not_have_is_an_unknown_partition(asked):
    message = by_id(b"t".ljust(16, b"."))
    message.topic_data[0].partition_data[0].index = 1
    assert asked.reply(message, 13).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_v13_a_request_that_is_refused_whole_is_answered_by_id(asked):
    known = b"t".ljust(16, b".")
    response = through(asked.raw(by_id(known, acks=5), 13), 13)
    assert response.responses[0].topic_id == known
    assert only(response).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_partitions_are_answered_one_by_one():
    asked = Asked(partitions=2)
    asked.partitions[0].log.fail_with = KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "gap")
    response = through(asked.raw(request(batch(), indexes=(0, 1, 5))), 9)
    replies = response.responses[0].partition_responses
    assert [reply.error_code for reply in replies] == [45, 0, 3]
    assert [reply.base_offset for reply in replies] == [-1, 0, -1]
    assert [reply.log_start_offset for reply in replies] == [0, 0, -1]
    assert replies[0].error_message == "gap"


def test_a_partition_named_twice_is_appended_to_and_answered_twice_in_order(asked):
    response = through(asked.raw(request(batch([b"a", b"b"]), indexes=(0, 0))), 9)
    assert [r.base_offset for r in response.responses[0].partition_responses] == [0, 2]


def test_s_app_8_acks_0_has_no_response(asked):
    assert asked.raw(request(batch(), acks=0)) is None
    assert not asked.ctx.close_connection
    assert asked.partitions[0].log.log_end_offset == 1


@pytest.mark.parametrize("topic", ["t", "unknown"])
def test_s_app_8_acks_0_closes_the_connection_on_error(asked, topic):
    asked.partitions[0].log.fail_with = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
    assert asked.raw(request(batch(), topic, acks=0)) is None
    assert asked.ctx.close_connection


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_s_app_8_other_acks_are_invalid_and_append_nothing(asked, acks):
    reply = asked.reply(request(batch(), acks=acks))
    assert (reply.error_code, reply.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert asked.partitions[0].log.log_end_offset == 0


def test_s_app_8_acks_all_alone_is_answered_at_once(asked):
    assert asked.reply(request(batch(), acks=-1)).error_code == 0


def test_s_app_8_acks_all_waits_for_the_high_watermark():
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    pending = asked.begun(request(batch(), acks=-1))
    assert not pending.done
    (partition,) = asked.partitions
    partition.record_follower_fetch(2, 1, knows_epoch=True)
    asked.bench.replicas.wake(partition)
    assert pending.done
    reply = only(through(pending.reply, 9))
    assert (reply.error_code, reply.base_offset) == (0, 0)
    assert asked.bench.purgatories.produce.statistics().watchers == 0


def test_s_app_8_acks_1_does_not_wait():
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    assert asked.reply(request(batch(), acks=1)).error_code == 0


def test_s_app_8_the_request_times_out_and_the_data_stays():
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    pending = asked.begun(request(batch(), acks=-1))
    asked.bench.advance(1.4)
    assert not pending.done
    asked.bench.advance(0.2)
    reply = only(through(pending.reply, 9))
    assert reply.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert asked.partitions[0].log.log_end_offset == 1


def test_s_app_8_not_enough_replicas_before_and_after():
    config = TopicConfig(min_insync_replicas=2)
    asked = Asked(config=config, replicas=(1, 2), isr=(1,))
    assert asked.reply(request(batch(), acks=-1)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    asked = Asked(config=config, replicas=(1, 2), isr=(1, 2))
    pending = asked.begun(request(batch(), acks=-1))
    (partition,) = asked.partitions
    partition.lead(led(0, (1, 2), (1,)))
    asked.bench.replicas.wake(partition)
    reply = only(pending.reply)
    assert reply.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_an_abandoned_produce_leaves_no_watcher():
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    pending = asked.begun(request(batch(), acks=-1))
    pending.leave()
    statistics = asked.bench.purgatories.produce.statistics()
    assert (statistics.parked, statistics.watchers) == (0, 0)


def test_s_app_10_a_duplicate_is_answered_with_the_original_offsets(asked):
    log = asked.partitions[0].log
    repeated = AppendInfo(
        5, 6, log_append_time=77, log_start_offset=2, record_count=2, valid_bytes=80
    )
    repeated.duplicate = True
    log.append_if_light = lambda *_, **__: repeated
    reply = asked.reply(request(batch()))
    assert (reply.base_offset, reply.log_append_time_ms, reply.log_start_offset) == (5, 77, 2)
    assert asked.partitions[0].statistics.messages_in == 0


def test_s_app_11_unknown_topic_and_partition(asked):
    for topic, index in (("x", 0), ("t", 1), ("t", -1), ("", 0)):
        reply = asked.reply(request(batch(), topic, indexes=(index,)))
        assert reply.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_led_elsewhere(asked):
    asked.bench.image.add("far", b"f" * 16)
    reply = asked.reply(request(batch(), "far"))
    assert reply.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_s_app_11_internal_topics_are_for_the_admin_client(topic):
    asked = Asked(name=topic)
    for client_id in ("client", "", None, "__admin_client2"):
        reply = asked.reply(request(batch(), topic), client_id=client_id)
        assert reply.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert asked.reply(request(batch(), topic), client_id="__admin_client").error_code == 0


@pytest.mark.parametrize("version", [3, 6, 7])
def test_s_app_7_zstd_needs_produce_v7(asked, version):
    records = batch([b"v" * 100], codec=CompressionType.ZSTD)
    reply = asked.reply(request(records, version=version), version)
    allowed = version >= 7
    assert reply.error_code == (0 if allowed else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def test_null_records_are_invalid(asked):
    reply = asked.reply(request(None))
    assert reply.error_code == ErrorCode.INVALID_RECORD
    assert "at least one record batch" in reply.error_message


def test_empty_records_reach_the_log_and_no_further(asked):
    asked.partitions[0].log.fail_with = InvalidRecord("no batch")
    assert asked.reply(request(b"")).error_code == ErrorCode.INVALID_RECORD


def test_a_transactional_batch_needs_a_transactional_id(asked):
    marked = batch(transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    assert read_header(marked).is_transactional
    reply = asked.reply(request(marked))
    assert reply.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert asked.partitions[0].log.log_end_offset == 0


def in_transaction(owner, **fields):
    return batch(
        transactional=True,
        producer_id=owner.producer_id,
        producer_epoch=owner.producer_epoch,
        **{"base_sequence": 0, **fields},
    )


@pytest.mark.parametrize("version", [3, 9, 10, 11])
def test_s_txn_7_a_partition_that_was_not_added_is_not_written_to(asked, version):
    owner = asked.transactions.owner()
    marked = in_transaction(owner)
    sent = request(marked, transactional_id="id", version=version)
    refused = ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE
    assert asked.reply(sent, version).error_code == refused
    assert asked.partitions[0].log.log_end_offset == 0
    asked.transactions.add(owner, TopicPartition("t", 0))
    sent = request(marked, transactional_id="id", version=version)
    assert asked.reply(sent, version).error_code == 0
    assert asked.partitions[0].log.log_end_offset == 1


def test_s_txn_7_v12_adds_the_partitions_itself():
    asked = Asked(partitions=2)
    owner = asked.transactions.owner()
    marked = in_transaction(owner)
    both = request(marked, transactional_id="id", version=12, indexes=(0, 1))
    replies = through(asked.raw(both, 12), 12).responses[0].partition_responses
    assert [reply.error_code for reply in replies] == [0, 0]
    value = asked.transactions.value()
    assert value.partitions == {TopicPartition("t", 0), TopicPartition("t", 1)}
    assert value.client_version == 2
    written = len(asked.transactions.log.all_records())
    following = in_transaction(asked.transactions.end(owner, version=2).producer)
    zombie = request(marked, transactional_id="id", version=12)
    assert asked.reply(zombie, 12).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert asked.reply(request(following, transactional_id="id", version=12), 12).error_code == 0
    assert len(asked.transactions.log.all_records()) == written + 3


def test_s_txn_7_v12_a_batch_that_overtook_the_first_one_is_refused(asked):
    owner = asked.transactions.owner()
    second = request(in_transaction(owner, base_sequence=5), transactional_id="id", version=12)
    for _ in range(2):
        reply = asked.reply(second, 12)
        assert reply.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_s_txn_7_v9_a_batch_that_overtook_a_refused_one_is_refused(asked):
    owner = asked.transactions.owner()

    def code_of(sequence, by=owner):
        sent = request(in_transaction(by, base_sequence=sequence), transactional_id="id")
        return asked.reply(sent).error_code

    assert [code_of(7), code_of(3), code_of(5)] == [ErrorCode.INVALID_TXN_STATE] * 3
    asked.transactions.add(owner, TopicPartition("t", 0))
    assert code_of(4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code_of(3) == code_of(4) == 0
    assert asked.partitions[0].log.log_end_offset == 2


def test_s_txn_7_v9_what_was_refused_of_an_older_epoch_does_not_matter(asked):
    first = asked.transactions.owner()
    sent = request(in_transaction(first), transactional_id="id")
    assert asked.reply(sent).error_code == ErrorCode.INVALID_TXN_STATE
    second = asked.transactions.owner()
    assert second.producer_id == first.producer_id
    asked.transactions.add(second, TopicPartition("t", 0))
    sent = request(in_transaction(second, base_sequence=3), transactional_id="id")
    assert asked.reply(sent).error_code == 0


@pytest.mark.parametrize("hold", ["log", "markers"])
def test_s_txn_7_v12_while_the_coordinator_is_busy_it_waits_and_then_is_to_be_sent_again(
    asked, hold
):
    owner = asked.transactions.owner()
    asked.transactions.add(owner, TopicPartition("t", 0), version=2)
    getattr(asked.transactions, hold).hold = True
    if hold == "log":
        asked.transactions.add(owner, TopicPartition("t", 1), version=2)
    else:
        owner = asked.transactions.end(owner, version=2).producer
    sent = request(in_transaction(owner), "t", transactional_id="id", version=12)
    refused = asked.begun(sent, 12)
    for waits_ms in (20, 20, 20, 20, 19):
        asked.transactions.advance_ms(waits_ms)
        assert not refused.done
    asked.transactions.advance_ms(2)
    assert only(through(refused.reply, 12)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert asked.partitions[0].log.log_end_offset == 0

    pending = asked.begun(sent, 12)
    getattr(asked.transactions, hold).release()
    assert only(through(pending.reply, 12)).error_code == 0


def test_s_txn_7_v12_waits_until_the_followers_have_what_was_added(asked):
    owner = asked.transactions.owner()
    asked.transactions.log.hold = True
    sent = request(in_transaction(owner), transactional_id="id", version=12)

    pending = asked.begun(sent, 12)
    assert not pending.done
    assert asked.partitions[0].log.log_end_offset == 0
    asked.transactions.log.release()
    assert only(through(pending.reply, 12)).error_code == 0


def test_s_txn_7_a_producer_that_is_not_the_owner_does_not_write(asked):
    zombie = asked.transactions.owner()
    marked = in_transaction(zombie)
    reply = asked.reply(request(marked, transactional_id="other"))
    assert reply.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    asked.transactions.owner()
    reply = asked.reply(request(marked, transactional_id="id"))
    assert reply.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_s_txn_7_while_markers_are_written_a_batch_is_to_be_sent_again(asked):
    owner = asked.transactions.owner()
    asked.transactions.add(owner, TopicPartition("t", 0))
    asked.transactions.markers.hold = True
    assert asked.transactions.end(owner).code == 0
    reply = asked.reply(request(in_transaction(owner), transactional_id="id"))
    assert reply.error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_s_app_3_record_errors_from_v8_on():
    asked = Asked(config=TopicConfig(cleanup_policy=frozenset({"compact"})))
    for version in (7, 8):
        asked.partitions[0].log.fail_with = InvalidRecord("keys", [(0, "no key"), (3, "no key")])
        reply = asked.reply(request(batch(), version=version), version)
        assert reply.error_code == ErrorCode.INVALID_RECORD
        told = [(e.batch_index, e.batch_index_error_message) for e in reply.record_errors]
        assert told == ([(0, "no key"), (3, "no key")] if version >= 8 else [])
        assert reply.error_message == ("keys" if version >= 8 else None)
    assert asked.partitions[0].statistics.no_key_compacted_topic_records == 4


def test_s_app_2_a_bad_crc_is_a_corrupt_message(asked):
    records = batch([b"value"])
    records[-1] ^= 1
    assert asked.reply(request(records)).error_code == ErrorCode.CORRUPT_MESSAGE
    assert asked.partitions[0].statistics.invalid_message_crc_records == 1


@pytest.mark.parametrize(("version", "code"), [(3, 6), (4, 56)])
def test_s_rec_11_a_failing_disk_takes_the_directory_offline(version, code):
    asked = Asked(partitions=2)
    asked.partitions[0].log.fail_with = StorageError("/data", "I/O error")
    assert asked.reply(request(batch(), version=version), version).error_code == code
    assert asked.bench.logs.failed == ["/data"]
    for index in (0, 1):
        message = request(batch(), indexes=(index,), version=version)
        assert asked.reply(message, version).error_code == code
    assert at_once(asked.bench.replicas.statistics()).offline_replica_count == 2


def test_a_big_batch_goes_to_a_thread_and_its_neighbours_do_not():
    asked = Asked(partitions=2)
    asked.partitions[1].threaded_append_bytes = 50
    work = asked.handler(context(9), request(batch(), indexes=(0, 1)))
    assert isinstance(work.send(None), Call)
    assert [p.log.log_end_offset for p in asked.partitions] == [1, 0]
    work.close()


def test_big_batches_are_answered_in_the_order_of_the_request():
    asked = Asked(partitions=2)
    asked.partitions[0].threaded_append_bytes = 50
    response = through(asked.raw(request(batch(), indexes=(0, 1))), 9)
    assert [r.base_offset for r in response.responses[0].partition_responses] == [0, 0]
    assert [p.log.log_end_offset for p in asked.partitions] == [1, 1]


def test_others_have_their_turn_after_so_many_bytes():
    asked = Asked(partitions=5)
    half = batch([bytes(TURN_BYTES // 2 - 1000)])
    work = asked.handler(context(9), request(half, indexes=range(5)))
    assert work.send(None) is PAUSE
    assert [p.log.log_end_offset for p in asked.partitions] == [1, 1, 0, 0, 0]
    assert work.send(None) is PAUSE
    assert [p.log.log_end_offset for p in asked.partitions] == [1, 1, 1, 1, 0]
    with pytest.raises(StopIteration) as ended:
        work.send(None)
    replies = ended.value.value.responses[0].partition_responses
    assert [(reply.index, reply.base_offset) for reply in replies] == [(i, 0) for i in range(5)]


def test_what_is_refused_takes_its_part_of_the_turn():
    asked = Asked(partitions=3)
    asked.partitions[0].log.fail_with = KafkaError(ErrorCode.CORRUPT_MESSAGE)
    most = batch([bytes(TURN_BYTES - 1000)])
    work = asked.handler(context(9), request(most, indexes=(0, 1, 2)))
    assert work.send(None) is PAUSE
    assert [p.log.log_end_offset for p in asked.partitions] == [0, 0, 0]
    work.close()


def test_a_batch_that_does_not_fit_into_the_turn_holds_up_no_smaller_one():
    asked = Asked(partitions=3)
    half, more = (batch([bytes(TURN_BYTES // 2 + size)]) for size in (-1000, 1000))
    message = request(half, indexes=range(3))
    of_partitions = message.topic_data[0].partition_data
    of_partitions[1].records, of_partitions[2].records = more, batch()
    work = asked.handler(context(9), message)
    assert work.send(None) is PAUSE
    assert [p.log.log_end_offset for p in asked.partitions] == [1, 0, 1]
    with pytest.raises(StopIteration):
        work.send(None)
    assert [p.log.log_end_offset for p in asked.partitions] == [1, 1, 1]


def test_a_refused_big_batch(asked):
    asked.partitions[0].threaded_append_bytes = 50
    asked.partitions[0].log.fail_with = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
    assert asked.reply(request(batch())).error_code == ErrorCode.MESSAGE_TOO_LARGE
    statistics = asked.partitions[0].statistics
    assert statistics.bytes_rejected == len(batch())
    assert statistics.failed_produce_requests == 0


def test_counters(asked):
    asked.raw(request(batch([b"a", b"b", b"c"])))
    asked.partitions[0].log.fail_with = KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    asked.raw(request(batch()))
    asked.raw(request(batch(), "nowhere"))
    statistics = at_once(asked.bench.replicas.statistics())
    assert statistics.topics["t"].messages_in == 3
    assert statistics.topics["t"].bytes_in == len(batch([b"a", b"b", b"c"]))
    assert statistics.topics["t"].total_produce_requests == 2
    assert statistics.topics["t"].failed_produce_requests == 1
    assert statistics.all_topics.total_produce_requests == 3
    assert list(statistics.topics) == ["t"]


def test_s_app_8_acks_0_closes_the_connection_if_all_fails(asked):
    ctx, message = context(9), request(batch(), acks=0)
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    assert asked.handler.error_response(ctx, message, unknown) is None
    assert ctx.close_connection
