"""Requests that parse but make no sense: handlers answer, nothing breaks, good clients go on.

Each number of a valid request is drawn anew, mostly from values that stand for something or lie at
an end, and so is the name of its topic. Produce has damaged records, too.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.api.delete_records import DeleteRecordsHandler
from broker.api.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.registry import request_codec, response_codec, spec
from tests.frames.mutations import all_places
from tests.frames.valid import Names, tree_of, valid_request
from tests.support.begun import begin
from tests.support.broker_bench import batch, context, with_bytes
from tests.support.real_bench import RealBench

TOPICS = st.sampled_from(("t", "", "x", "__consumer_offsets", "t" * 300))
NUMBERS = {
    "q": st.sampled_from((0, 1, 2, 5, -1, -2, -3, -4, -5, -6, -7, 2**63 - 1, -(2**63), 10**12)),
    "l": st.sampled_from((0, 1, 2, -1, -2, 5, 2**31 - 1, -(2**31), 1000)),
    "h": st.sampled_from((0, 1, -1, 2, -(2**15), 2**15 - 1)),
    "b": st.sampled_from((0, 1, -1, 9)),
}
NAMES = Names(topic="t", topic_id=b"t".ljust(16, b"."), directory="/a")
HANDLERS = {
    ApiKey.PRODUCE: lambda bench: bench.produce_handler,
    ApiKey.FETCH: lambda bench: bench.fetch_handler,
    ApiKey.LIST_OFFSETS: lambda bench: bench.list_handler,
    ApiKey.DELETE_RECORDS: lambda bench: DeleteRecordsHandler(bench.replicas),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda bench: OffsetForLeaderEpochHandler(bench.replicas),
}


def senseless(data, key, version):
    """Draw a request."""
    request = valid_request(key, version, NAMES)
    for place in all_places(tree_of(key, version), request):
        if place.node.code in NUMBERS:
            place.set(request, data.draw(NUMBERS[place.node.code]))
        elif place.label in ("topics.topic", "topics.name", "topic_data.name"):
            place.set(request, data.draw(TOPICS))
    if key == ApiKey.PRODUCE:
        request.transactional_id = None
        request.topic_data[0].partition_data[0].records = data.draw(damaged_records())
    return request


@st.composite
def damaged_records(draw):
    """Bytes, or a batch of which one byte is another."""
    torn = draw(st.one_of(st.binary(max_size=200), st.integers(0, 120)))
    if isinstance(torn, bytes):
        return torn
    records = bytearray(batch([b"value"]))
    records[torn % len(records)] ^= draw(st.integers(1, 255))
    return bytes(records)


@pytest.mark.parametrize("key", HANDLERS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_senseless_request_is_answered_and_harms_nobody(key, data):
    version = data.draw(st.integers(spec(key).min_version, spec(key).max_version))
    bench = RealBench()
    bench.topic("t", 2)
    for _ in range(3):
        assert bench.produce(batch([b"a", b"b"])).error_code == 0
    codec, handler = request_codec(key, version), HANDLERS[key](bench)
    request = codec.parse(bytearray(codec.build(senseless(data, key, version))))
    begun = begin(handler(context(version), request))
    reply = begun.reply if begun.done else begun.leave()
    blamed = handler.error_response(context(version), request, ErrorCode.UNKNOWN_SERVER_ERROR)
    for response in (reply, blamed):
        if response is not None:
            response_codec(key, version).build(with_bytes(response))
    reply = bench.produce(batch([b"last"]))
    assert reply.error_code == 0
    assert bench.values(reply.base_offset)[-1] == (reply.base_offset, b"last")
    assert bench.logs.offline_dirs == ()
    assert bench.purgatories.fetch.statistics().watchers == 0
