"""A scrape over HTTP, on both networks: the answers, and scrapers that hang, crowd or go away."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from broker.metrics.http_listener import MetricsListener, Render
from broker.world.transport import BindError
from tests.support.fake_handlers import AsyncClient
from tests.support.networks import MemoryNet, Net

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


async def text() -> list[bytes]:
    await trio.lowlevel.checkpoint()
    return [b"metric", b" 1\n"]


@asynccontextmanager
async def listening(net: Net, render: Render = text) -> AsyncIterator[MetricsListener]:
    listener = MetricsListener(("127.0.0.1", 0), render, net.transport, net.clock)
    async with trio.open_nursery() as nursery:
        await nursery.start(listener.serve)
        yield listener
        nursery.cancel_scope.cancel()


async def ask(net: Net, listener: MetricsListener, request: bytes) -> bytes:
    """All that comes back."""
    client = AsyncClient(net.connect(listener.port))
    await client.send(request)
    answer = await client.receive_until_closed()
    client.close()
    return answer


def test_http_answers(net: Net) -> None:
    async def main() -> None:
        async with listening(net) as listener:
            answer = await ask(net, listener, GET)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert answer.endswith(b"\r\n\r\nmetric 1\n")
            head = await ask(net, listener, b"HEAD /metrics HTTP/1.1\r\n\r\n")
            assert head.endswith(b"\r\n\r\n")
            for request, code in (
                (b"GET /else HTTP/1.1\r\n\r\n", b" 404 "),
                (b"POST /metrics HTTP/1.1\r\n\r\n", b" 405 "),
                (b"nonsense\r\n\r\n", b" 400 "),
                (b"\x16\x03\x01" * 2000 + b"\r\n\r\n", b" 400 "),
            ):
                assert code in await ask(net, listener, request)

    net.run(main)


def test_clients_that_hang_or_drip_are_given_up_and_keep_nobody_from_scraping() -> None:
    """In virtual time: five seconds for a request, however slowly it comes."""
    net = MemoryNet()

    async def main() -> None:
        async with listening(net) as listener:
            began = net.clock.monotonic()
            hanging = [AsyncClient(net.connect(listener.port)) for _ in range(20)]
            dripping = AsyncClient(net.connect(listener.port))
            for byte in GET[:4]:
                await dripping.send(bytes((byte,)))
                await trio.sleep(1)
            assert b"metric 1" in await ask(net, listener, GET)
            assert net.clock.monotonic() == pytest.approx(began + 4)
            for client in (*hanging, dripping):
                assert await client.closed_by_peer()
            assert net.clock.monotonic() == pytest.approx(began + 5)

    net.run(main)


def test_of_too_many_clients_the_oldest_silent_one_goes(net: Net) -> None:
    async def main() -> None:
        async with listening(net) as listener:
            silent = [AsyncClient(net.connect(listener.port)) for _ in range(64)]
            await net.settle()
            assert b"metric 1" in await ask(net, listener, GET)
            assert await silent[0].closed_by_peer()
            assert silent[1].has_nothing()
            for client in silent:
                client.close()

    net.run(main)


def test_answers_that_nobody_takes_end_after_ten_seconds() -> None:
    net = MemoryNet()

    async def endless() -> bytes:
        await trio.lowlevel.checkpoint()
        return bytes(100_000_000)

    async def main() -> None:
        async with listening(net, endless) as listener:
            slow = [AsyncClient(net.connect(listener.port)) for _ in range(4)]
            for client in slow:
                await client.send(GET)
            await trio.sleep(10.1)
            assert listener._open == 0

    net.run(main)


def test_a_scraper_that_goes_away_is_no_error(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with listening(net) as listener:
            silent, rude = (AsyncClient(net.connect(listener.port)) for _ in range(2))
            silent.close()
            await rude.send(GET[:10])
            await net.settle()
            net.reset(rude.stream)
            await net.settle()
            assert b"metric 1" in await ask(net, listener, GET)

    net.run(main)
    assert not caplog.records


def test_a_scrape_that_fails_is_logged_and_ends_without_an_answer(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> bytes:
        raise OSError("no /proc here")

    async def main() -> None:
        async with listening(net, broken) as listener:
            assert await ask(net, listener, GET) == b""

    with caplog.at_level(logging.ERROR):
        net.run(main)
    assert "A scrape of the metrics failed" in caplog.text
    assert "no /proc here" in caplog.text


def test_an_address_in_use_is_a_bind_error_and_the_port_is_given_back_at_the_end(
    net: Net,
) -> None:
    async def main() -> None:
        async with listening(net) as listener:
            second = MetricsListener(("127.0.0.1", listener.port), text, net.transport, net.clock)
            with pytest.raises(BindError, match="in use"):
                await second.serve()
        with pytest.raises(ConnectionRefusedError):
            net.connect(listener.port)

    net.run(main)
