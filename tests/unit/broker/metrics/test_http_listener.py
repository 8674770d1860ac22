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


async def text() -> bytes:
    await trio.lowlevel.checkpoint()
    return b"metric 1\n"


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


def test_a_scraper_that_hangs_is_given_up_and_the_crowd_behind_it_waits() -> None:
    """Four at once; each has ten seconds from its arrival on. In virtual time."""
    net = MemoryNet()

    async def main() -> None:
        async with listening(net) as listener:
            hanging = [AsyncClient(net.connect(listener.port)) for _ in range(4)]
            await trio.sleep(4)
            patient = AsyncClient(net.connect(listener.port))
            await patient.send(GET)
            await trio.sleep(5.9)
            assert patient.has_nothing()
            assert all(client.has_nothing() for client in hanging)
            for client in hanging:
                assert await client.closed_by_peer()
            assert net.clock.monotonic() == pytest.approx(began + 10)
            assert b"metric 1" in await patient.receive_until_closed()

    async def timed() -> None:
        nonlocal began
        began = net.clock.monotonic()
        await main()

    began = 0.0
    net.run(timed)


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
