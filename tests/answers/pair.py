"""Apache Kafka and this broker side by side, with the same settings, and what each answers."""

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, ProtocolError
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.frames.valid import Names, records
from tests.fuzz.findings import error_codes
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import SHORT_LIVED
from tests.support.produce_requests import one_batch
from tests.support.topic_requests import creation
from tests.support.wire_client import read_response, request_frame

SETTINGS: Final = {
    "broker.id": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1",
    "log.initial.task.delay.ms": "600000",
}
PATIENCE_S: Final = 0.5
LONG_PATIENCE_S: Final = 10.0
"""The patience with a broker that is silent while the other has answered."""
_SETUP_S: Final = 60.0
_LATER: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    )
)
"""Kafka's errors while another of its threads is busy; here all is done with the answer."""
_RETRIES: Final = 40
_RETRY_PAUSE_S: Final = 0.025


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one request."""

    kind: str
    """answer, closed, silent, unreadable."""
    answer: Any = None
    waited: bool = False
    """Whether it came after the request's own waiting time, where that is measured."""

    @property
    def codes(self) -> set[int]:
        """Error codes anywhere in the answer."""
        return error_codes(self.answer) if self.kind == "answer" else set()


class Side:
    """One broker, one connection that is made anew when it broke."""

    def __init__(self, port: int, directory: str, source: str = "127.0.0.1") -> None:
        """`source`: the address of the client."""
        self.port = port
        self.directory = directory
        self.source = source
        self._socket: socket.socket | None = None
        self._received = bytearray()

    def send(self, key: ApiKey, version: int, request: Any) -> bool:
        """Send a request; return whether that went well."""
        try:
            if self._socket is None:
                self._socket = socket.create_connection(
                    ("127.0.0.1", self.port), 5, source_address=(self.source, 0)
                )
            self._socket.sendall(request_frame(key, version, request))
        except OSError:
            self.hang_up()
            return False
        return True

    def receive(self, key: ApiKey, version: int, patience_s: float = PATIENCE_S) -> Outcome:
        """Return the answer to the last request; after `silent` it may still come."""
        if self._socket is None:
            return Outcome("closed")
        self._socket.settimeout(patience_s)
        try:
            self._receive_up_to(4)
            (size,) = struct.unpack_from(">i", self._received)
            self._receive_up_to(4 + size)
        except TimeoutError:
            return Outcome("silent")
        except OSError:
            self.hang_up()
            return Outcome("closed")
        frame = bytes(self._received[4 : 4 + size])
        del self._received[: 4 + size]
        try:
            return Outcome("answer", read_response(key, version, frame)[1])
        except ProtocolError as error:
            return Outcome("unreadable", str(error))

    def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """Return the answer to a request that must have one. Raises AssertionError."""
        self.send(key, version, request)
        outcome = self.receive(key, version, _SETUP_S)
        assert outcome.kind == "answer", (key, version, outcome)
        return outcome.answer

    def hang_up(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._received.clear()

    def _receive_up_to(self, size: int) -> None:
        assert self._socket is not None
        while len(self._received) < size:
            piece = self._socket.recv(1 << 16)
            if not piece:
                raise ConnectionError
            self._received += piece

    # ---- what requests are about

    def make_topics(self, names: Sequence[str]) -> None:
        """Make the missing topics, with two partitions each; wait until they can be written to."""
        made = self.call(ApiKey.CREATE_TOPICS, 5, creation(*names, partitions=2))
        assert error_codes(made) <= {0, ErrorCode.TOPIC_ALREADY_EXISTS}, made
        time.sleep(0.05)  # Kafka's brokers learn of a deletion when it has been answered.
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        eventually(lambda: error_codes(self.call(ApiKey.METADATA, 9, asked)) == {0})

    def names_about(self, topic: str) -> Names:
        """Return the names for requests about this topic, which gets some records."""
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        metadata = self.call(ApiKey.METADATA, 12, asked)
        described = metadata.topics[0]
        names = Names(
            topic=topic,
            topic_id=described.topic_id,
            cluster_id=metadata.cluster_id,
            directory=self.directory,
            group=f"group-of-{topic}",
            transactional_id=f"transaction-of-{topic}",
            new_topic=f"new-{topic}",
        )
        for _ in range(3):
            self.write(names)
        return names

    def write(self, names: Names) -> Any:
        """Append a batch to partition 0."""
        request = one_batch(names.topic, records(names))
        return eventually(lambda: _fine(self.call(ApiKey.PRODUCE, 9, request)))

    def own(self, names: Names) -> Names:
        """Give the transactional id its first, or its next, owner."""
        request = InitProducerIdRequest(
            transactional_id=names.transactional_id, transaction_timeout_ms=900_000
        )
        answer = eventually(lambda: _fine(self.call(ApiKey.INIT_PRODUCER_ID, 4, request)))
        return names.about(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)

    def add_to_transaction(self, owner: Names, *topics: str) -> None:
        """Add partition 0 of each topic to the owner's transaction."""
        request = adding(owner, *topics)
        eventually(lambda: _fine(self.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)))

    def wait_settled(self, transactional_id: str) -> None:
        """Wait until all markers of the last transaction are written."""
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

        def attempt() -> Any:
            answer = self.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
            (one,) = answer.transaction_states
            return None if one.transaction_state.startswith("Prepare") else one

        eventually(attempt)

    def find_coordinators(self) -> None:
        """Have the broker make the internal topics."""
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key="any", key_type=key_type)
            eventually(
                lambda request=request: _fine(self.call(ApiKey.FIND_COORDINATOR, 3, request))
            )


class Pair:
    """Both, started; used as a context manager."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        wanted = {**SETTINGS, **(settings or {})}
        theirs, ours = directory / "kafka", directory / "ours"
        self._kafka = ApacheKafka(
            theirs,
            {**wanted, "log.dirs": f"{theirs}/kafka-logs,{theirs}/b"},
            heap="512m",
            java_options=SHORT_LIVED,
        )
        self._broker = BrokerProcess(ours, {**wanted, "log.dirs": f"{ours}/a,{ours}/b"})
        self._directories = (f"{theirs}/b", f"{ours}/b")

    def __enter__(self) -> "Pair":
        self._kafka.start()
        self._broker.start()
        self.theirs = Side(self._kafka.port, self._directories[0])
        self.ours = Side(self._broker.port, self._directories[1])
        for side in self.sides:
            side.find_coordinators()
            first = Names(topic="none", topic_id=bytes(16), directory="/", transactional_id="any")
            side.own(first)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for side in self.sides:
            side.hang_up()
        with contextlib.suppress(Exception):
            self._broker.stop()
        self._kafka.kill()

    @property
    def sides(self) -> tuple[Side, Side]:
        """Apache Kafka, this broker."""
        return self.theirs, self.ours

    def ask(self, key: ApiKey, version: int, requests: tuple[Any, Any]) -> tuple[Outcome, Outcome]:
        """Send one request to each."""
        return ask_both(self.sides, key, version, requests)

    def from_source(self, source: str) -> tuple[Side, Side]:
        """Return both for a client with another address of this machine; the caller hangs up."""
        theirs, ours = self.sides
        return (
            Side(theirs.port, theirs.directory, source),
            Side(ours.port, ours.directory, source),
        )

    def output(self) -> str:
        """Return the output of this broker."""
        return self._broker.output_file.read_text(errors="replace")


def ask_both(
    sides: tuple[Side, Side],
    key: ApiKey,
    version: int,
    requests: tuple[Any, Any],
    *,
    is_answered: bool = False,
) -> tuple[Outcome, Outcome]:
    """Send one request to each broker. `is_answered`: Kafka answers it also if it refuses it."""
    for side, request in zip(sides, requests, strict=True):
        side.send(key, version, request)
    theirs, ours = (side.receive(key, version) for side in sides)
    # One of the two is slow, or the machine is. Kafka may never answer what this broker refuses.
    if ours.kind == "silent" and theirs.kind != "silent":
        ours = sides[1].receive(key, version, LONG_PATIENCE_S)
    elif theirs.kind == "silent" and ours.kind != "silent" and (is_answered or ours.codes <= {0}):
        theirs = sides[0].receive(key, version, LONG_PATIENCE_S)
    for _ in range(_RETRIES):
        if ours.codes == theirs.codes and not _under_way(key, theirs, ours):
            break
        if not theirs.codes & _LATER and not _under_way(key, theirs, ours):
            break
        time.sleep(_RETRY_PAUSE_S)
        sides[0].send(key, version, requests[0])
        theirs = sides[0].receive(key, version)
    for side, outcome in zip(sides, (theirs, ours), strict=True):
        if outcome.kind == "silent":
            side.hang_up()
    return theirs, ours


def _under_way(key: ApiKey, theirs: Outcome, ours: Outcome) -> bool:
    """Kafka's other threads still write the markers of a transaction, or apply altered quotas."""
    if theirs.kind != "answer":
        return False
    if key is ApiKey.DESCRIBE_CLIENT_QUOTAS:
        return ours.kind == "answer" and _quotas(theirs) != _quotas(ours)
    if key is not ApiKey.DESCRIBE_TRANSACTIONS:
        return False
    states = theirs.answer.transaction_states
    return any(one.transaction_state.startswith("Prepare") for one in states)


def _quotas(outcome: Outcome) -> list[tuple[list[str], list[str]]]:
    return sorted(
        (sorted(map(repr, entry.entity)), sorted(map(repr, entry.values)))
        for entry in outcome.answer.entries or ()
    )


def adding(owner: Names, *topics: str) -> AddPartitionsToTxnRequest:
    """Return the request of `Side.add_to_transaction`."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=owner.transactional_id,
        v3_and_below_producer_id=owner.producer_id,
        v3_and_below_producer_epoch=owner.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics],
    )


def eventually(attempt: Callable[[], Any]) -> Any:
    """Return the first true result of `attempt`. Raises AssertionError if none comes in time."""
    deadline = time.monotonic() + _SETUP_S
    while time.monotonic() < deadline:
        result = attempt()
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError("it did not come true")


def _fine(answer: Any) -> Any:
    return answer if error_codes(answer) <= {0} else None
