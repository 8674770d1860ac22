"""Connections with fake handlers, on both networks: order, errors, parking, limits, memory."""

import itertools
import logging
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.network import buffers
from broker.request import Aside, Pending, RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from storage.filesystem import File, FileSystem
from storage.log.results import FileSlice
from storage.os_filesystem import OsFileSystem
from tests.support.fake_handlers import Harness, empty_reply, running_server
from tests.support.memory_filesystem import MemoryFileSystem
from tests.support.networks import Net, SocketNet, wait_until
from tests.support.wire_client import request_frame

HEARTBEAT, FETCH, PRODUCE = ApiKey.HEARTBEAT, ApiKey.FETCH, ApiKey.PRODUCE


def heartbeat(correlation_id: int, generation: int = 0) -> bytes:
    request = HeartbeatRequest(generation_id=generation)
    return request_frame(HEARTBEAT, 4, request, correlation_id=correlation_id)


def echo(ctx: RequestContext, request: Any) -> Any:
    """The throttle time carries the generation back."""
    return HeartbeatResponse(throttle_time_ms=request.generation_id)


def test_s_net_1_pipelined_requests_are_answered_in_order(net: Net) -> None:
    async def main() -> None:
        async with running_server(net, {HEARTBEAT: echo}) as harness:
            client = await harness.connect()
            await client.send(b"".join(heartbeat(number, number * 7) for number in range(3000)))
            for number in range(3000):
                response = await client.response(HEARTBEAT, 4, number)
                assert response.throttle_time_ms == number * 7
            times = harness.channel.statistics().requests["Heartbeat"]
            assert times.requests == times.phases["total"].count == 3000

    net.run(main)


def test_s_net_1_a_parked_request_holds_back_the_replies_behind_it(net: Net) -> None:
    pending = Pending()

    def park_first(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 1 else echo(ctx, request)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: park_first}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(0) + heartbeat(1) + heartbeat(2, 5))
            await client.response(HEARTBEAT, 4, 0)
            await net.settle()
            assert client.has_nothing()
            await trio.sleep(0.05)
            assert harness.channel.statistics().requests["Heartbeat"].requests == 2
            assert pending.complete(HeartbeatResponse(throttle_time_ms=3))
            assert not pending.complete(HeartbeatResponse(throttle_time_ms=4))
            assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 3
            assert (await client.response(HEARTBEAT, 4, 2)).throttle_time_ms == 5
            assert (
                harness.channel.statistics().requests["Heartbeat"].phases["remote"].total_s > 0.04
            )

    net.run(main)


def test_every_way_to_cut_a_request_gives_the_same_answer(net: Net) -> None:
    async def main() -> None:
        async with running_server(net, {HEARTBEAT: echo}) as harness:
            client = await harness.connect()
            frame = heartbeat(1, 42)
            for cut in range(1, len(frame)):
                await client.send(frame[:cut])
                await trio.sleep(0)
                await client.send(frame[cut:])
                assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 42
            for byte in frame:
                await client.send(bytes([byte]))
            assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 42

    net.run(main)


def test_a_coroutine_is_run_by_a_worker_and_may_end_in_a_parked_reply(net: Net) -> None:
    pendings: list[Pending] = []

    def work(ctx: RequestContext, request: Any) -> Any:
        async def later() -> Any:
            await trio.sleep(0.01)
            if ctx.correlation_id == 2:
                pendings.append(Pending())
                return pendings[0]
            return echo(ctx, request)

        return later()

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1, 11) + heartbeat(2, 12))
            assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 11
            await wait_until(lambda: bool(pendings))
            pendings[0].complete(HeartbeatResponse(throttle_time_ms=1))
            assert (await client.response(HEARTBEAT, 4, 2)).throttle_time_ms == 1

    net.run(main)


@pytest.mark.parametrize("by", ["handler", "worker", "parked", "aside"])
def test_an_aside_is_made_without_a_worker_whoever_returns_it(net: Net, by: str) -> None:
    go = trio.Event()

    def work(ctx: RequestContext, request: Any) -> Any:
        if ctx.correlation_id == 9:
            return echo(ctx, request)

        async def make() -> Any:
            await go.wait()
            return echo(ctx, request)

        async def later() -> Any:
            return Aside(make)

        if by == "parked":
            parked = Pending()
            parked.complete(Aside(make))
            return parked
        return {"handler": Aside(make), "aside": Aside(later)}.get(by) or later()

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}, workers=1, queued_max=1) as harness:
            clients = [await harness.connect() for _ in range(4)]
            for number, client in enumerate(clients):
                await client.send(heartbeat(number, number) + heartbeat(9, 7))
            await net.settle()
            await trio.sleep(0.02)
            assert harness.channel.pool.statistics().busy == 0
            assert harness.channel.asides.working == 4
            go.set()
            for number, client in enumerate(clients):
                response = await client.response(HEARTBEAT, 4, number)
                assert response.throttle_time_ms == number
                await client.response(HEARTBEAT, 4, 9)
            times = harness.channel.statistics().requests["Heartbeat"]
            assert times.phases["remote"].total_s > 0.04
            assert harness.channel.asides.working == 0

    net.run(main)


def test_an_aside_ends_with_its_client(net: Net) -> None:
    ended: list[str] = []

    def work(ctx: RequestContext, request: Any) -> Any:
        async def make() -> None:
            try:
                await trio.sleep_forever()
            finally:
                ended.append("aside")

        return Aside(make)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1))
            await wait_until(lambda: harness.channel.asides.working == 1)
            await net.settle()
            client.close()
            await wait_until(lambda: ended == ["aside"])

    net.run(main)


def test_what_an_aside_raises_is_answered(net: Net) -> None:
    def work(ctx: RequestContext, request: Any) -> Any:
        async def make() -> None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR) if ctx.correlation_id else ValueError("bug")

        return Aside(make)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(0) + heartbeat(1))
            response = await client.response(HEARTBEAT, 4, 0)
            assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            response = await client.response(HEARTBEAT, 4, 1)
            assert response.error_code == ErrorCode.NOT_COORDINATOR

    net.run(main)


def test_work_beyond_workers_and_queue_waits_and_is_finished(net: Net) -> None:
    running = 0
    most = 0

    def work(ctx: RequestContext, request: Any) -> Any:
        async def later() -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await trio.sleep(0.01)
            running -= 1
            return echo(ctx, request)

        return later()

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}, workers=2, queued_max=1) as harness:
            clients = [await harness.connect() for _ in range(10)]
            for number, client in enumerate(clients):
                await client.send(heartbeat(number, number))
            for number, client in enumerate(clients):
                response = await client.response(HEARTBEAT, 4, number)
                assert response.throttle_time_ms == number
            assert most == 2

    net.run(main)


@pytest.mark.parametrize("late", [False, True])
def test_a_refusal_becomes_the_apis_error_response(net: Net, late: bool) -> None:
    def refuse(ctx: RequestContext, request: Any) -> Any:
        async def later() -> Any:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

        if late:
            return later()
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: refuse}) as harness:
            client = await harness.connect()
            response = await client.call(HEARTBEAT, 4)
            assert response.error_code == ErrorCode.NOT_COORDINATOR
            assert harness.channel.statistics().requests["Heartbeat"].errors == 0

    net.run(main)


@pytest.mark.parametrize("late", [False, True])
def test_a_bug_of_a_handler_is_logged_and_answered(
    net: Net, late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(ctx: RequestContext, request: Any) -> Any:
        async def later() -> Any:
            raise ValueError("the bug")

        if late:
            return later()
        raise ValueError("the bug")

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: broken}) as harness:
            client = await harness.connect()
            for _ in range(2):
                response = await client.call(HEARTBEAT, 4)
                assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert harness.channel.statistics().requests["Heartbeat"].errors == 2

    with caplog.at_level(logging.ERROR):
        net.run(main)
    assert "ValueError: the bug" in caplog.text


def test_a_reply_that_cannot_be_encoded_becomes_an_error_response(net: Net) -> None:
    def wrong(ctx: RequestContext, request: Any) -> Any:
        return HeartbeatResponse(throttle_time_ms="not a number")

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: wrong}) as harness:
            client = await harness.connect()
            assert (await client.call(HEARTBEAT, 4)).error_code == -1

    net.run(main)


def test_a_reply_with_slices_that_cannot_be_encoded_leaves_nothing_behind(net: Net) -> None:
    def wrong(ctx: RequestContext, request: Any) -> Any:
        return fetch_reply(b"fine", 7) if ctx.correlation_id == 2 else fetch_reply(b"x")

    async def main() -> None:
        async with running_server(net, {FETCH: wrong}) as harness:
            client = await harness.connect()
            frames = [request_frame(FETCH, 12, correlation_id=number) for number in (1, 2, 3)]
            await client.send(b"".join(frames))
            replies = [await client.response(FETCH, 12, number) for number in (1, 2, 3)]
            assert [reply.error_code for reply in replies] == [0, -1, 0]
            assert [len(reply.responses) for reply in replies] == [1, 0, 1]

    net.run(main)


def test_no_reply_for_none_and_the_next_request_goes_on(net: Net) -> None:
    async def main() -> None:
        async with running_server(net, {PRODUCE: lambda c, r: None, HEARTBEAT: echo}) as harness:
            client = await harness.connect()
            await client.send(request_frame(PRODUCE, 9) + heartbeat(8))
            await client.response(HEARTBEAT, 4, 8)

    net.run(main)


def test_s_app_8_a_handler_may_end_the_connection_instead_of_answering(net: Net) -> None:
    def fail(ctx: RequestContext, request: Any) -> Any:
        ctx.close_connection = True

    async def main() -> None:
        async with running_server(net, {PRODUCE: fail, HEARTBEAT: echo}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1) + request_frame(PRODUCE, 9) + heartbeat(2))
            await client.response(HEARTBEAT, 4, 1)
            assert await client.closed_by_peer()

    net.run(main)


PLAIN = request_frame(HEARTBEAT, 0)
BAD_FRAMES = {
    "negative size": struct.pack(">i", -5),
    "size zero": struct.pack(">i", 0),
    "size below a header": struct.pack(">i", 7) + bytes(7),
    "larger than the limit": struct.pack(">i", 104857601),
    "unknown key": PLAIN[:4] + b"\x7f\xff" + PLAIN[6:],
    "key that is not served": request_frame(ApiKey.JOIN_GROUP, 0),
    "unknown version": PLAIN[:6] + b"\x00\x63" + PLAIN[8:],
    "negative version": PLAIN[:6] + b"\xff\xff" + bytes(100),
    "body cut short": struct.pack(">i", 12) + struct.pack(">hhihh", 12, 0, 1, -1, 5),
    "client id beyond the frame": struct.pack(">i", 10) + struct.pack(">hhih", 12, 0, 1, 30000),
    "client id not UTF-8": struct.pack(">i", 12) + struct.pack(">hhih", 12, 0, 1, 2) + b"\xff\xfe",
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_bad_bytes_end_the_connection_and_nothing_else(
    net: Net, bad: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with running_server(net, {HEARTBEAT: echo}) as harness:
            client = await harness.connect()
            bystander = await harness.connect()
            await client.send(heartbeat(1) + bad)
            assert await client.closed_by_peer() or True  # the first reply may still arrive
            await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 1)
            await bystander.call(HEARTBEAT, 4)

    with caplog.at_level(logging.INFO):
        net.run(main)
    assert sum("Closing connection" in record.message for record in caplog.records) == 1
    assert not any(record.levelno >= logging.ERROR for record in caplog.records)


def test_a1b_1_an_unknown_version_of_api_versions_is_answered_in_v0(net: Net) -> None:
    async def main() -> None:
        served = {ApiKey.API_VERSIONS: empty_reply(ApiKey.API_VERSIONS)}
        async with running_server(net, served) as harness:
            client = await harness.connect()
            frame = bytearray(request_frame(ApiKey.API_VERSIONS, 3, correlation_id=9))
            frame[6:8] = b"\x00\x63"
            await client.send(bytes(frame))
            response = await client.response(ApiKey.API_VERSIONS, 0, 9)
            assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
            await client.call(ApiKey.API_VERSIONS, 4)  # and the connection goes on

    net.run(main)


def test_a_parked_request_notices_that_its_client_has_gone(net: Net) -> None:
    dropped: list[int] = []
    pending = Pending()
    pending.on_abandon = lambda: dropped.append(1)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: lambda c, r: pending}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1))
            await wait_until(lambda: "Heartbeat" in harness.channel.statistics().requests)
            client.close()
            await wait_until(lambda: pending.abandoned)
            assert dropped == [1]
            assert not pending.done

    net.run(main)


def test_a_disconnect_behind_bytes_sent_ahead_is_noticed_by_the_sweeper(net: Net) -> None:
    pending = Pending()

    async def main() -> None:
        async with running_server(
            net, {HEARTBEAT: lambda c, r: pending}, max_idle_s=0.5
        ) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1))
            await wait_until(lambda: "Heartbeat" in harness.channel.statistics().requests)
            await client.send(heartbeat(2))
            await net.settle()
            assert not pending.abandoned
            client.close()
            await wait_until(lambda: pending.abandoned)

    net.run(main)


def test_bytes_sent_ahead_of_a_parked_reply_are_not_lost(net: Net) -> None:
    pending = Pending()

    def park_first(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 1 else echo(ctx, request)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: park_first}) as harness:
            client = await harness.connect()
            ahead = b"".join(heartbeat(number, number) for number in range(2, 500))
            await client.send(heartbeat(1) + ahead[:1001])
            await net.settle()
            await client.send(ahead[1001:])
            await net.settle()
            pending.complete(HeartbeatResponse())
            for number in range(1, 500):
                await client.response(HEARTBEAT, 4, number)

    net.run(main)


def produce_frame(payload: bytes, correlation_id: int = 1) -> bytes:
    partition = PartitionProduceData(index=0, records=payload)
    topic = TopicProduceData(name="t", partition_data=[partition])
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic])
    return request_frame(PRODUCE, 9, request, correlation_id=correlation_id)


def test_records_are_writable_views_of_the_frame_whatever_its_size(net: Net) -> None:
    seen: list[bytes] = []

    def keep(ctx: RequestContext, request: Any) -> Any:
        records = request.topic_data[0].partition_data[0].records
        seen.append(bytes(records))
        records[0] = 255  # offsets are patched in place
        return ProduceResponse(responses=[])

    sizes = [1, 100, 70_000, 131_000, 131_072, 300_000, 5_000_000, 100, 1_000_000, 10]

    async def main() -> None:
        async with running_server(net, {PRODUCE: keep}) as harness:
            client = await harness.connect()
            payloads = [bytes([1 + n]) * size for n, size in enumerate(sizes)]
            for number, payload in enumerate(payloads):
                await client.send(produce_frame(payload, number))
                await client.response(PRODUCE, 9, number)
            async with trio.open_nursery() as nursery:
                stream = b"".join(produce_frame(p, n) for n, p in enumerate(payloads))
                nursery.start_soon(client.send, stream)
                for number in range(len(payloads)):
                    await client.response(PRODUCE, 9, number)
            assert seen == payloads * 2
            await wait_until(lambda: harness.server.statistics().buffers.in_use == 0)
            free = harness.server.statistics().buffers.bytes_free
            assert buffers.STANDARD_BYTES <= free <= buffers.RETAINED_BYTES

    net.run(main)


def test_an_announced_size_costs_no_more_than_what_has_arrived(net: Net) -> None:
    async def main() -> None:
        async with running_server(net, {HEARTBEAT: echo}) as harness:
            claim = struct.pack(">i", 100_000_000)
            clients = [await harness.connect() for _ in range(200)]
            for client in clients:
                await client.send(claim + bytes(3000))
            await net.settle()
            held = harness.server.statistics().buffers
            assert held.bytes_in_use <= buffers.CROWDED * buffers.STANDARD_BYTES
            big = await harness.connect()
            await big.send(claim + bytes(200_000))
            await net.settle()
            more = harness.server.statistics().buffers
            assert more.bytes_in_use - held.bytes_in_use <= buffers.STANDARD_BYTES
            assert harness.server.statistics().frames.held == 200 * 3004 + 200_004
            good = await harness.connect()
            await good.call(HEARTBEAT, 4)

    net.run(main)


def test_idle_connections_hold_no_buffer(net: Net) -> None:
    async def main() -> None:
        async with running_server(net, {HEARTBEAT: echo}) as harness:
            clients = [await harness.connect() for _ in range(100)]
            for client in clients:
                await client.call(HEARTBEAT, 4)
            await wait_until(lambda: harness.server.statistics().buffers.in_use == 0)

    net.run(main)


def fetch_reply(*records: Any) -> Any:
    partitions = [PartitionData(partition_index=n, records=r) for n, r in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


@pytest.fixture(params=[OsFileSystem, MemoryFileSystem], ids=["on disk", "in memory"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> File:
    """An empty file: one with a descriptor for sendfile, and one without."""
    fs: FileSystem = request.param()
    fs.make_dirs(str(tmp_path))
    return fs.open(f"{tmp_path}/segment", create=True)


def test_slices_of_files_are_sent_between_the_bytes_around_them(net: Net, file: File) -> None:
    content = bytes(range(256)) * 20_000
    file.pwrite(content, 0)
    spans = [(0, 10), (5, 70_000), (70_005, 65_536), (9, 65_535), (100_000, 4_000_000), (1, 0)]
    records = [FileSlice(file, start, size) for start, size in spans]

    async def main() -> None:
        async with running_server(net, {FETCH: lambda c, r: fetch_reply(*records)}) as harness:
            client = await harness.connect()
            for _ in range(3):
                response = await client.call(FETCH, 12)
                for part, (start, size) in zip(
                    response.responses[0].partitions, spans, strict=True
                ):
                    assert bytes(part.records) == content[start : start + size]

    net.run(main)


def test_a_file_cut_behind_our_back_ends_the_connection(net: Net, file: File) -> None:
    file.pwrite(bytes(100_000), 0)
    record = FileSlice(file, 0, 200_000)

    async def main() -> None:
        async with running_server(net, {FETCH: lambda c, r: fetch_reply(record)}) as harness:
            client = await harness.connect()
            with pytest.raises(ConnectionError):
                await client.call(FETCH, 12)

    net.run(main)


class ColdSlice(FileSlice):
    """One that is not in the page cache until it was loaded."""

    __slots__ = ("loaded_by",)

    def is_cached(self) -> bool:
        return hasattr(self, "loaded_by")

    def load(self) -> None:
        super().load()
        self.loaded_by = threading.get_ident()

    def read(self) -> bytes:
        assert self.is_cached()
        return super().read()

    def fileno(self) -> int:
        assert self.is_cached()
        return super().fileno()


@pytest.mark.parametrize("size", [1000, 200_000])
def test_cold_slices_are_loaded_by_a_worker_first(net: Net, file: File, size: int) -> None:
    content = bytes(range(256)) * 1000
    file.pwrite(content, 0)
    record = ColdSlice(file, 7, size)

    async def main() -> None:
        async with running_server(net, {FETCH: lambda c, r: fetch_reply(record)}) as harness:
            client = await harness.connect()
            for _ in range(2):
                response = await client.call(FETCH, 12)
                assert bytes(response.responses[0].partitions[0].records) == content[7 : 7 + size]
            assert harness.server.statistics().cold_reads == 1
            assert (record.loaded_by == threading.get_ident()) is net.in_memory

    net.run(main)


def test_a_busy_connection_does_not_keep_the_others_waiting() -> None:
    """Fairness: between two replies of a quiet client a loud one gets a few turns, no more.

    A turn is real time, so on sockets only: in virtual time work takes none.
    """
    net = SocketNet()
    log: list[str] = []

    def note(ctx: RequestContext, request: Any) -> Any:
        log.append(str(ctx.client_id))
        return echo(ctx, request)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: note}) as harness:
            loud, quiet = await harness.connect(), await harness.connect()
            blast = b"".join(
                request_frame(HEARTBEAT, 4, correlation_id=n, client_id="loud")
                for n in range(20_000)
            )

            async def drain() -> None:
                await loud.receive_until_closed()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(loud.send, blast)
                nursery.start_soon(drain)
                await wait_until(lambda: len(log) > 100)
                for number in range(10):
                    await quiet.send(
                        request_frame(HEARTBEAT, 4, correlation_id=number, client_id="quiet")
                    )
                    await quiet.response(HEARTBEAT, 4, number)
                nursery.cancel_scope.cancel()

    net.run(main)
    marks = [position for position, name in enumerate(log) if name == "quiet"]
    gaps = [after - before for before, after in itertools.pairwise(marks)]
    assert max(gaps) < 1500, gaps


async def _stuck_client(harness: Harness) -> Any:
    client = await harness.connect()
    await client.send(request_frame(FETCH, 12))
    return client


def test_a_client_that_takes_no_reply_is_closed_when_its_idle_time_is_over(net: Net) -> None:
    big = fetch_reply(bytes(20_000_000))

    async def main() -> None:
        async with running_server(net, {FETCH: lambda c, r: big}, max_idle_s=0.3) as harness:
            await _stuck_client(harness)
            await wait_until(lambda: harness.server.statistics().idle_closed == 1)
            await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 0)

    net.run(main)
