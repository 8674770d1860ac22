"""The fault proxy between a client and a broker that only counts: each fault does what it says."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from queue import Empty, Queue
from random import Random

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.end_txn import EndTxnResponse
from protocol.messages.registry import response_codec
from tests.anomalies.faults.frames import request_frame as parsed
from tests.anomalies.faults.plan import Fault, FaultPlan, is_protected
from tests.anomalies.faults.proxy import FaultProxy
from tests.support.wire_client import WireClient, request_frame

VERSION = 5
PATIENCE_S = 10


class CountingBroker:
    """Answers every EndTxn with NONE and says which connection brought it."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.arrived: Queue[tuple[int, int]] = Queue()
        """(connection, correlation id) of each request."""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        number = 0
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            number += 1
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile("rb") as stream:
            while size := stream.read(4):
                data = stream.read(struct.unpack(">i", size)[0])
                (correlation_id,) = struct.unpack_from(">i", data, 4)
                self.arrived.put((number, correlation_id))
                body = response_codec(ApiKey.END_TXN, VERSION).build(EndTxnResponse())
                answer = struct.pack(">ib", correlation_id, 0) + body
                connection.sendall(struct.pack(">i", len(answer)) + answer)

    def next_arrival(self) -> tuple[int, int]:
        return self.arrived.get(timeout=PATIENCE_S)

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def broker() -> Iterator[CountingBroker]:
    made = CountingBroker()
    yield made
    made.close()


@pytest.fixture
def proxy(broker: CountingBroker) -> Iterator[FaultProxy]:
    with FaultProxy(Random(1)) as made:
        made.broker_port = broker.port
        yield made


def always(fault: Fault) -> FaultPlan:
    return FaultPlan(chances={fault: 1.0}, longest_s=0.05)


def test_without_faults_frames_pass_in_both_directions(
    broker: CountingBroker, proxy: FaultProxy
) -> None:
    with WireClient(proxy.port) as client:
        for number in (7, 8):
            client.call(ApiKey.END_TXN, VERSION, correlation_id=number)
        assert [broker.next_arrival() for _ in range(2)] == [(1, 7), (1, 8)]
    assert not proxy.counts


def test_a_dropped_answer_is_of_a_request_that_was_carried_out(
    broker: CountingBroker, proxy: FaultProxy
) -> None:
    proxy.plan = always(Fault.DROP_ANSWER)
    with WireClient(proxy.port) as client, pytest.raises(ConnectionError):
        client.call(ApiKey.END_TXN, VERSION, correlation_id=7)
    assert broker.next_arrival() == (1, 7)
    assert proxy.counts == {"drop answer END_TXN": 1}


def test_a_late_request_comes_on_another_connection_when_the_client_is_cut_off(
    broker: CountingBroker, proxy: FaultProxy
) -> None:
    proxy.plan = always(Fault.LATE)
    with WireClient(proxy.port) as client, pytest.raises(ConnectionError):
        client.call(ApiKey.END_TXN, VERSION, correlation_id=7)
    assert broker.next_arrival() == (2, 7)


def test_a_replayed_request_comes_twice_and_is_answered_once(
    broker: CountingBroker, proxy: FaultProxy
) -> None:
    proxy.plan = always(Fault.REPLAY)
    with WireClient(proxy.port) as client:
        client.call(ApiKey.END_TXN, VERSION, correlation_id=7)
        assert [broker.next_arrival() for _ in range(2)] == [(1, 7), (2, 7)]
        proxy.calm()
        client.call(ApiKey.END_TXN, VERSION, correlation_id=8)
    assert broker.next_arrival() == (1, 8)
    while proxy.has_late_requests:
        time.sleep(0.01)
    assert proxy.repeats_answered == {"END_TXN v5: NONE": 1}


def test_a_cut_request_never_comes(broker: CountingBroker, proxy: FaultProxy) -> None:
    proxy.plan = always(Fault.CUT)
    with WireClient(proxy.port) as client, pytest.raises(ConnectionError):
        client.call(ApiKey.END_TXN, VERSION, correlation_id=7)
    with pytest.raises(Empty):
        broker.arrived.get_nowait()


def test_all_connections_may_be_dropped_at_once(broker: CountingBroker, proxy: FaultProxy) -> None:
    with WireClient(proxy.port) as client:
        client.call(ApiKey.END_TXN, VERSION)
        proxy.hang_up()
        assert client.closed_by_peer()
    with WireClient(proxy.port) as client:
        client.call(ApiKey.END_TXN, VERSION)


@pytest.mark.parametrize(
    ("key", "version", "protected"),
    [
        (ApiKey.PRODUCE, 11, True),
        (ApiKey.END_TXN, 5, True),
        (ApiKey.END_TXN, 4, False),
        (ApiKey.TXN_OFFSET_COMMIT, 5, True),
        (ApiKey.TXN_OFFSET_COMMIT, 4, False),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 3, False),
    ],
)
def test_only_what_the_protocol_protects_is_repeated(
    key: ApiKey, version: int, protected: bool
) -> None:
    frame = parsed(request_frame(key, version)[4:])
    assert is_protected(frame) is protected
    drawn = FaultPlan(chances={Fault.REPLAY: 1.0}).draw(frame, Random(1))
    assert drawn is (Fault.REPLAY if protected else None)


def test_the_same_seed_draws_the_same_faults() -> None:
    plan = FaultPlan(chances={Fault.REPLAY: 0.3, Fault.CUT: 0.3})
    frame = parsed(request_frame(ApiKey.END_TXN, VERSION)[4:])
    one, two = (Random("5 proxy") for _ in range(2))
    drawn = [plan.draw(frame, one) for _ in range(200)]
    assert drawn == [plan.draw(frame, two) for _ in range(200)]
    assert set(drawn) == {Fault.REPLAY, Fault.CUT, None}
