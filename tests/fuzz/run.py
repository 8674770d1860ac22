"""One chunk: a broker, some thousand frames from a seed, and the observations of the run.

A chunk can be repeated: the same seed, chunk and number of frames are the same run. The
broker is a whole one in memory and in virtual time (`tests.support.whole_broker`), so that a
request that waits costs nothing, and a process is as good as a machine. After each frame:

* it was answered, or the connection was closed, or it is one that may wait or be silent;
* the answer can be read and says UNKNOWN_SERVER_ERROR nowhere;
* nothing was logged as an error or with a traceback, and the broker runs;
* no turn of the loop took longer than `Limits.turn_s` of CPU, memory did not jump.

A good client writes all the while; at the end it reads what was acknowledged.
"""

import gc
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import FrameType
from typing import Any, Final

import trio

from broker.registry import ADVERTISED
from broker.world.streams import send_all
from broker.world.transport import Stream
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, ProtocolError
from protocol.framing import response_header_is_flexible
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.registry import request_codec, response_codec
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from tests.frames.valid import Names, advertised_versions
from tests.fuzz.findings import Finding, Findings, is_server_error, place_of
from tests.fuzz.frames import Frame, FrameSource
from tests.fuzz.watch import Hands, LogWatch, TurnWatch, greatest_rss, rss
from tests.support.memory_client import HOST, PORT, MemoryClient, receive_frame
from tests.support.memory_transport import MemoryTransport
from tests.support.produce_requests import one_batch
from tests.support.virtual_time import Timeline
from tests.support.whole_broker import WholeBroker

SETTINGS: Final = {
    "log.dirs": "/d,/e",
    "log.retention.bytes": "1000000",
    "log.segment.bytes": "1000000",
    "socket.request.max.bytes": "10000000",
    "transaction.max.timeout.ms": "900000",
}
PATIENCE_S: Final = 1.0
"""Virtual seconds for an answer."""
MAY_WAIT: Final = frozenset((ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP))
"""Requests that may be parked for as long as they say themselves."""
_AGAIN_S: Final = 1.0
"""The alarm rings again, because Python swallows errors in a callback of its own."""
_MINUS_ONE: Final = b"\xff\xff"
_READ_ALWAYS_BYTES: Final = 20_000
"""Longer answers are read only when UNKNOWN_SERVER_ERROR may be in them: reading costs more than
all the rest."""
FRAMES_PER_TOPIC: Final = 250
FRAMES_PER_GOOD_WRITE: Final = 50
GOOD: Final = "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits that no frame may exceed."""

    turn_s: float = 0.25
    frame_s: float = 20.0
    """Wall time after which the frame is given up, and with it the broker."""
    memory_bytes: int = 300 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The frames of a run that can be repeated."""

    seed: int
    number: int
    frames: int


@dataclass(slots=True, kw_only=True)
class Result:
    """The observations of a chunk."""

    frames: int = 0
    answers: int = 0
    closed: int = 0
    silent: int = 0
    acknowledged: int = 0
    findings: Findings = field(default_factory=Findings)
    turns: list[tuple[float, str]] = field(default_factory=list)
    """The longest turns, with the frames that took them."""
    rss_bytes: int = 0
    """Resident memory at the end."""

    @property
    def ends(self) -> tuple[int, int, int]:
        """How many were answered, closed and left without an answer."""
        return self.answers, self.closed, self.silent

    def note_turn(self, turn_s: float, text: str) -> None:
        """Keep the ten longest."""
        if len(self.turns) < 10 or turn_s > self.turns[-1][0]:
            self.turns.append((turn_s, text))
            self.turns.sort(key=lambda turn: -turn[0])
            del self.turns[10:]

    def merge(self, other: "Result") -> None:
        """Add the observations of another chunk."""
        self.frames += other.frames
        self.answers += other.answers
        self.closed += other.closed
        self.silent += other.silent
        self.acknowledged += other.acknowledged
        self.rss_bytes = max(self.rss_bytes, other.rss_bytes)
        for turn in other.turns:
            self.note_turn(*turn)
        self.findings.merge(other.findings)


class Stalled(BaseException):
    """A frame took longer than any may; not an Exception, so that no handler answers it."""


class Stopped(Exception):
    """The broker ended by itself."""


def prepare() -> None:
    """Make every codec, which is done at first use and would count as a turn of the loop."""
    for key, version in advertised_versions(ADVERTISED):
        for codec in (request_codec(key, version), response_codec(key, version)):
            assert codec.parse_at is not None
            assert codec.build_into is not None


def run_chunk(
    chunk: Chunk, limits: Limits, *, on_frame: Callable[[], None] | None = None
) -> Result:
    """Send the chunk's frames. A broker that a frame has stopped is followed by another one."""
    result = Result()
    source = FrameSource(ADVERTISED, Random(f"{chunk.seed}/{chunk.number}"))
    with watched_log() as log, alarm():
        done = 0
        while done < chunk.frames:
            part = _Part(chunk, limits, source, result, log, done, on_frame)
            part.run()
            done = part.done
    gc.collect()
    result.rss_bytes = rss()
    return result


class Watched:
    """One broker, and the checks after each frame."""

    def __init__(self, chunk: Chunk, limits: Limits, result: Result, log: LogWatch) -> None:
        self._chunk = chunk
        self._limits = limits
        self._result = result
        self._log = log
        self._hands = Hands()
        self._turns = TurnWatch(self._hands)
        self._timeline = Timeline()
        self._memory = 0

    def _begin(self) -> None:
        """Before something is sent."""
        self._turns.take()
        signal.setitimer(signal.ITIMER_REAL, self._limits.frame_s, _AGAIN_S)

    def _look(self, text: str) -> None:
        """Add the findings since `_begin`: a long turn, memory, the log."""
        turn_s = self._turns.take()
        self._result.note_turn(turn_s, text)
        if turn_s > self._limits.turn_s:
            self._add("long turn", f"{turn_s:.3f} s of CPU")
        memory = greatest_rss()
        grown, self._memory = memory - self._memory, memory
        if grown > self._limits.memory_bytes:
            self._add("memory", f"{grown >> 20} MB")
        for said in self._log.take():
            self._add("traceback", said, place_of(said))

    def _add(self, what: str, details: str = "", signature: str = "") -> None:
        """Add a finding; without a signature it has that of the frame."""
        raise NotImplementedError


class _Part(Watched):
    """The life of one broker."""

    def __init__(
        self,
        chunk: Chunk,
        limits: Limits,
        source: FrameSource,
        result: Result,
        log: LogWatch,
        done: int,
        on_frame: Callable[[], None] | None,
    ) -> None:
        super().__init__(chunk, limits, result, log)
        self.done = done
        self._source = source
        self._on_frame = on_frame
        self._frame = Frame(None, 0, "start", (), b"")
        self._stream: Stream | None = None
        self._names: Names | None = None
        self._good_written = 0

    def run(self) -> None:
        """Run until the chunk or the broker ends."""
        try:
            trio.run(self._main, clock=self._timeline, instruments=[self._turns])
        except BaseException as error:
            stalled = _found(error, Stalled)
            if stalled is not None:
                self._add("stall", f"longer than {self._limits.frame_s} s")
            elif _found(error, KeyboardInterrupt) is not None:
                raise
            else:
                self._add("stopped", _text(error), place_of(_text(error)))
            # The frame that stopped it counts; else a machine that is too slow would never end.
            self.done += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    async def _main(self) -> None:
        async with trio.open_nursery() as nursery:
            broker = WholeBroker(self._timeline, nursery, SETTINGS, self._hands)
            await broker.start()
            self._turns.client = trio.lowlevel.current_task()
            admin = broker.client("admin")
            await broker.create_topic(GOOD)
            signal.setitimer(signal.ITIMER_REAL, self._limits.frame_s, _AGAIN_S)
            self._memory = greatest_rss()
            while self.done < self._chunk.frames:
                if self._names is None or self.done % FRAMES_PER_TOPIC == 0:
                    self._names = await self._new_names(broker, admin)
                await self._one(broker)
                self.done += 1
                if self.done % FRAMES_PER_GOOD_WRITE == 0:
                    await self._write_good(admin)
            await self._read_good(broker)
            nursery.cancel_scope.cancel()

    async def _one(self, broker: WholeBroker) -> None:
        assert self._names is not None
        frame = self._frame = self._source.next(self._names)
        self._result.frames += 1
        self._begin()
        await self._send(broker, frame)
        self._look(f"{self._where()} {frame.text}")
        if broker.has_ended:
            raise Stopped(str(broker.server.failure))
        if self._on_frame is not None:
            self._on_frame()

    async def _send(self, broker: WholeBroker, frame: Frame) -> None:
        result = self._result
        if self._stream is None:
            self._stream = MemoryTransport(broker.network).connect(HOST, PORT)
        answer = None
        with broker.clock.timeout(PATIENCE_S):
            try:
                await send_all(self._stream, frame.data)
                answer = await receive_frame(self._stream)
            except OSError:
                result.closed += 1
                self._hang_up()
                return
        if answer is None:
            result.silent += 1
            self._hang_up()
            if frame.key not in MAY_WAIT and not frame.may_be_silent:
                self._add("silence", "neither an answer nor the end")
            return
        result.answers += 1
        if frame.key is not None:
            self._read(frame, answer)

    def _read(self, frame: Frame, answer: bytes) -> None:
        assert frame.key is not None
        suspicious = _MINUS_ONE in answer
        if len(answer) > _READ_ALWAYS_BYTES and not suspicious:
            return
        start = 5 if response_header_is_flexible(frame.key, frame.version) else 4
        try:
            response = response_codec(frame.key, frame.version).parse(answer[start:])
        except ProtocolError as error:
            self._add("unreadable", answer.hex(), f"{frame.key.name} {error}")
            return
        if suspicious and is_server_error(response):
            self._add("server error", repr(response)[:2_000])

    def _hang_up(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    # ---- things that the frames name

    async def _new_names(self, broker: WholeBroker, admin: MemoryClient) -> Names:
        old = self._names
        if old is not None:
            await admin.call(
                ApiKey.DELETE_TOPICS, 3, DeleteTopicsRequest(topic_names=[old.topic], timeout_ms=1)
            )
        topic = f"t{self.done}"
        await broker.create_topic(topic, partitions=2)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        described = await admin.call(ApiKey.METADATA, 12, asked)
        names = Names(
            topic=topic,
            topic_id=described.topics[0].topic_id,
            directory="/e",
            group=f"g{self.done}",
            transactional_id=f"x{self.done}",
            new_topic=f"new{self.done}",
        )
        init = InitProducerIdRequest(
            transactional_id=names.transactional_id, transaction_timeout_ms=60_000
        )
        owner = await admin.call(ApiKey.INIT_PRODUCER_ID, 4, init)
        for _ in range(3):
            await self._produce(admin, topic)
        return names.about(producer_id=owner.producer_id, producer_epoch=owner.producer_epoch)

    async def _produce(self, client: MemoryClient, topic: str) -> Any:
        batch = build_batch([(client.wall_ms(), None, b"v", ())])
        request = one_batch(topic, batch, timeout_ms=1_000)
        answer = await client.call(ApiKey.PRODUCE, 9, request)
        return answer.responses[0].partition_responses[0]

    # ---- the good client

    async def _write_good(self, client: MemoryClient) -> None:
        answer = await self._produce(client, GOOD)
        if answer.error_code != ErrorCode.NONE or answer.base_offset != self._good_written:
            self._add("lost", repr(answer), f"a good write was answered {answer.error_code}")
        self._good_written += 1
        self._result.acknowledged += 1

    async def _read_good(self, broker: WholeBroker) -> None:
        client = broker.client("reader")
        offset = 0
        while offset < self._good_written:
            request = FetchRequest(
                max_bytes=1 << 20,
                topics=[
                    FetchTopic(
                        topic=GOOD,
                        partitions=[
                            FetchPartition(
                                partition=0,
                                fetch_offset=offset,
                                partition_max_bytes=1 << 20,
                                current_leader_epoch=-1,
                            )
                        ],
                    )
                ],
                session_epoch=-1,
            )
            answer = await client.call(ApiKey.FETCH, 11, request)
            records = answer.responses[0].partitions[0].records or b""
            ends = [one.last_offset + 1 for _, one in iter_batches(records)]
            reached = max(ends, default=offset)
            if reached == offset:
                self._add("lost", f"{offset} of all", "acknowledged records of a good client")
                return
            offset = reached

    # ---- findings

    def _where(self) -> str:
        return f"--seed {self._chunk.seed} --chunk {self._chunk.number} frame {self.done}"

    def _add(self, what: str, details: str = "", signature: str = "") -> None:
        frame = self._frame
        text = f"{frame.text} {frame.data[:200].hex()}"
        finding = Finding(what, signature or _signature(frame), self._where(), text, details)
        self._result.findings.add(finding)


def _signature(frame: Frame) -> str:
    fields = "+".join(sorted({name for name, _ in frame.changes}))
    return f"{'?' if frame.key is None else frame.key.name} {frame.kind} {fields}"


def _found(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    if isinstance(error, kind):
        return error
    inner: list[BaseException | None] = [error.__cause__, error.__context__]
    if isinstance(error, BaseExceptionGroup):
        inner += error.exceptions
    return next((e for e in (_found(one, kind) for one in inner if one is not None) if e), None)


def _text(error: BaseException) -> str:
    import traceback

    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return "".join(traceback.format_exception(error))


@contextmanager
def watched_log() -> Iterator[LogWatch]:
    """All loggers are heard, and nothing is printed."""
    watch, root = LogWatch(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [watch]
    root.setLevel(logging.INFO)
    try:
        yield watch
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@contextmanager
def alarm() -> Iterator[None]:
    """The interval timer raises `Stalled` in whatever runs."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Stalled

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
