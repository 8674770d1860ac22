"""Slices of files in replies: sent, read where that must be, loaded first when cold.

Connections with fake handlers, on both networks.
"""

import threading
from pathlib import Path

import pytest

from broker.api.fetch import API
from broker.api_facts import Served
from broker.network.replies import Replies
from broker.network.request_metrics import RequestMetrics
from broker.network.routes import Route
from storage.filesystem import File, FileSystem
from storage.log.results import FileSlice
from storage.os_filesystem import OsFileSystem
from tests.support.connection_requests import FETCH, fetch_reply
from tests.support.fake_handlers import FakeHandler, connected
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.networks import Net


@pytest.fixture(params=[OsFileSystem, FaultyFileSystem], ids=["on disk", "in memory"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> File:
    """An empty file: one with a descriptor for sendfile, and one without."""
    fs: FileSystem = request.param()
    fs.make_dirs(str(tmp_path))
    return fs.open(f"{tmp_path}/segment", create=True)


async def test_slices_of_files_are_sent_between_the_bytes_around_them(
    stream_net: Net, file: File
) -> None:
    content = bytes(range(256)) * 20_000
    file.pwrite(content, 0)
    spans = [(0, 10), (5, 70_000), (70_005, 65_536), (9, 65_535), (100_000, 4_000_000), (1, 0)]
    records = [FileSlice(file, start, size) for start, size in spans]
    async with connected(stream_net, {FETCH: lambda c, r: fetch_reply(*records)}) as (_, client):
        for _ in range(3):
            response = await client.call(FETCH, 12)
            for part, (start, size) in zip(response.responses[0].partitions, spans, strict=True):
                assert bytes(part.records) == content[start : start + size]


async def test_a_file_cut_behind_our_back_ends_the_connection(net: Net, file: File) -> None:
    file.pwrite(bytes(100_000), 0)
    record = FileSlice(file, 0, 200_000)
    async with connected(net, {FETCH: lambda c, r: fetch_reply(record)}) as (_, client):
        with pytest.raises(ConnectionError):
            await client.call(FETCH, 12)


def test_slices_of_files_take_no_memory(file: File) -> None:
    handler = FakeHandler(FETCH, lambda ctx, request: None)
    route = Route(Served(API, handler), 12, RequestMetrics("Fetch"))
    without = Replies.size_in_memory(route, fetch_reply(b"", b""))
    reply = fetch_reply(FileSlice(file, 0, 1_000_000), bytes(5_000))
    assert without < 200
    assert 5_000 <= Replies.size_in_memory(route, reply) < 5_000 + without + 10


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
async def test_cold_slices_are_loaded_by_a_worker_first(net: Net, file: File, size: int) -> None:
    content = bytes(range(256)) * 1000
    file.pwrite(content, 0)
    record = ColdSlice(file, 7, size)
    async with connected(net, {FETCH: lambda c, r: fetch_reply(record)}) as (harness, client):
        for _ in range(2):
            response = await client.call(FETCH, 12)
            assert bytes(response.responses[0].partitions[0].records) == content[7 : 7 + size]
        assert harness.server.statistics().cold_reads == 1
        assert (record.loaded_by == threading.get_ident()) is net.in_memory
