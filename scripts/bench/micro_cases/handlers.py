"""Codec, handler and log of a request."""

from functools import partial
from pathlib import Path
from typing import Any

from measuring import Run

from micro_cases.messages import FETCH, NOW, PRODUCE, Case, each, fetch_request, produce_request
from protocol.messages import fetch, produce
from protocol.records.builder import build_batch
from storage.log.results import FileSlice
from storage.os_filesystem import OsFileSystem
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.broker_bench import context
from tests.support.real_bench import RealBench


def bench_of(directory: Path) -> RealBench:
    return RealBench(str(directory), OsFileSystem())


def handler_produce(size: int, partitions: int, directory: Path) -> Run:
    bench = bench_of(directory)
    bench.topic("topic-0", partitions)
    records = build_batch([(NOW, None, b"x" * size, ())])
    request = produce_request(1, partitions, records)
    frame = bytearray(produce.ProduceRequest.codec(PRODUCE).build(request))
    view, end = memoryview(frame), len(frame)
    parse = produce.ProduceRequest.codec(PRODUCE).parse_at
    build = produce.ProduceResponse.codec(PRODUCE).build_into
    ctx, handler = context(PRODUCE), bench.produce_handler

    def serve() -> Any:
        request, _ = parse(frame, view, 0, end)
        for data in request.topic_data[0].partition_data:
            data.records[:8] = bytes(8)  # as a client sends it
        reply: Any = handler(ctx, request)
        build(reply, [].append)
        return reply

    answers = serve().responses[0].partition_responses
    assert not any(answer.error_code for answer in answers), answers
    return each(serve)


def handler_fetch(partitions: int, idle: int, session: bool, directory: Path) -> Run:
    bench = bench_of(directory)
    leaders = bench.topic("topic-0", partitions + idle)
    records = build_batch([(NOW, None, b"x" * 1000, ())])
    for leader in leaders[:partitions]:
        for _ in range(20):
            leader.append_as_leader_nowait(bytearray(records))
    ctx, handler = context(FETCH), bench.fetch_handler
    codec, build = fetch.FetchRequest.codec(FETCH), fetch.FetchResponse.codec(FETCH).build_into
    offsets = {n: 5 if n < partitions else 0 for n in range(len(leaders))}
    first = at_once(handler(ctx, fetch_request(1, offsets, session_epoch=0 if session else -1)))
    kept = bench.sessions.get(first.session_id) if session else None
    if session:
        offsets = dict.fromkeys(range(partitions), 5)
    following = {"session_id": first.session_id, "session_epoch": 1 if session else -1}
    frame = bytearray(codec.build(fetch_request(1, offsets, **following)))
    view, parse = memoryview(frame), codec.parse_at

    def serve() -> Any:
        request, _ = parse(frame, view, 0, len(frame))
        for leader in leaders[:partitions]:
            leader.last_read.offset = -1  # nobody else has read there
        if kept is not None:
            kept.epoch = 1
        reply = at_once(handler(ctx, request))
        build(reply, [].append)
        return reply

    answered = [data for topic in serve().responses for data in topic.partitions]
    assert sum(len(data.records) > 0 for data in answered) == partitions, answered
    return each(serve)


def handler_long_poll(partitions: int, directory: Path) -> Run:
    """A fetch that parks, and the append that wakes it."""
    bench = bench_of(directory)
    leaders = bench.topic("topic-0", partitions)
    records = build_batch([(NOW, None, b"x" * 100, ())])
    ctx, handler = context(FETCH), bench.fetch_handler
    asked = fetch_request(1, dict.fromkeys(range(partitions), 0), session_epoch=0)
    first = at_once(handler(ctx, asked))
    session = bench.sessions.get(first.session_id)
    assert session is not None

    def poll() -> None:
        asked = {0: leaders[0].log.log_end_offset}
        fields = {"session_id": session.id, "session_epoch": session.epoch, "max_wait_ms": 500}
        work = begin(handler(ctx, fetch_request(1, asked, **fields)))
        leaders[0].append_as_leader_nowait(bytearray(records))
        bench.replicas.wake(leaders[0])
        assert work.done

    return each(poll)


def handler_followers(followers: int, directory: Path) -> Run:
    """Fetches of one tail, each with a session of its own: parked, woken by one append, answered.

    An operation is one delivery: its share of the append, and its request and reply as bytes.
    """
    bench = bench_of(directory)
    leader = bench.topic("topic-0", 1)[0]
    records = build_batch([(NOW, None, b"x" * 100, ())])
    ctx, handler = context(FETCH), bench.fetch_handler
    codec, build = fetch.FetchRequest.codec(FETCH), fetch.FetchResponse.codec(FETCH).build_into
    sessions = []
    for _ in range(followers):
        first = at_once(handler(ctx, fetch_request(1, {0: 0}, session_epoch=0)))
        sessions.append(bench.sessions.get(first.session_id))

    def poll() -> None:
        asked = {0: leader.log.log_end_offset}
        parked = []
        for session in sessions:
            fields = {"session_id": session.id, "session_epoch": session.epoch, "max_wait_ms": 500}
            frame = bytearray(codec.build(fetch_request(1, asked, **fields)))
            view = memoryview(frame)
            request, _ = codec.parse_at(frame, view, 0, len(frame))
            parked.append(begin(handler(ctx, request)))
        leader.append_as_leader_nowait(bytearray(records))
        bench.replicas.wake(leader)
        for work in parked:
            pieces: list[Any] = []
            build(work.reply, pieces.append)
            for piece in pieces:
                if isinstance(piece, FileSlice) and piece.is_cached():
                    piece.read()

    def run(count: int) -> None:
        for _ in range(-(-count // followers)):
            poll()

    return run


CASES: dict[str, Case] = {
    "handler/produce 100 B x 1": partial(handler_produce, 100, 1),
    "handler/produce 16000 B x 1": partial(handler_produce, 16_000, 1),
    "handler/produce 1000 B x 10": partial(handler_produce, 1_000, 10),
    "handler/fetch 1 partition": partial(handler_fetch, 1, 0, False),
    "handler/fetch 4 partitions": partial(handler_fetch, 4, 0, False),
    "handler/fetch 4 partitions, session": partial(handler_fetch, 4, 0, True),
    "handler/fetch 1 of 50 partitions, session": partial(handler_fetch, 1, 49, True),
    "handler/long poll, 1 partition": partial(handler_long_poll, 1),
    "handler/long poll, 1 of 50 partitions": partial(handler_long_poll, 50),
    "handler/long poll, 1 of 100 followers": partial(handler_followers, 100),
}
