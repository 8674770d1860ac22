"""A scrape over HTTP, on both networks: the answers, and scrapers that hang, crowd or go away."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio

from broker.metrics.http_listener import _TEXTS, CONNECTIONS, MetricsListener, Render
from broker.world.transport import BindError
from tests.support.fake_handlers import AsyncClient
from tests.support.networks import Net, only_in_memory, wait_until

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


async def crowd(net: Net, listener: MetricsListener) -> list[AsyncClient]:
    """Connect as many clients as the listener serves at once."""
    clients = []
    for number in range(CONNECTIONS):
        clients.append(AsyncClient(net.connect(listener.port)))
        if number % 100 == 0:  # fewer than the backlog holds
            await net.settle()
    await net.settle()
    return clients


async def test_http_answers(net: Net) -> None:
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


@only_in_memory
async def test_clients_that_hang_or_drip_are_given_up_and_keep_nobody_from_scraping(
    net: Net,
) -> None:
    """In virtual time: five seconds for a request, however slowly it comes."""
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


async def test_the_oldest_silent_client_goes_when_there_are_too_many(net: Net) -> None:
    async with listening(net) as listener:
        silent = await crowd(net, listener)
        assert b"metric 1" in await ask(net, listener, GET)
        assert await silent[0].closed_by_peer()
        assert silent[1].has_nothing()
        for client in silent:
            client.close()


@only_in_memory
async def test_answers_that_nobody_takes_end_after_ten_seconds(net: Net) -> None:
    async def endless() -> list[bytes]:
        await trio.lowlevel.checkpoint()
        return [bytes(100_000_000)]

    async with listening(net, endless) as listener:
        slow = [AsyncClient(net.connect(listener.port)) for _ in range(4)]
        for client in slow:
            await client.send(GET)
        await trio.sleep(9.9)
        assert len(listener._open) == 4
        await trio.sleep(0.2)
        assert not listener._open


@only_in_memory
async def test_readers_that_take_nothing_keep_nobody_from_scraping(net: Net) -> None:
    """Neither by their number, as the oldest makes room, nor by the texts that they keep."""
    made = 0

    async def large() -> list[bytes]:
        nonlocal made
        made += 1
        await trio.lowlevel.checkpoint()
        return [b"text %d " % made, bytes(1_000_000)]

    async with listening(net, large) as listener:
        slow = []
        for number in range(_TEXTS - 1):
            slow.append(AsyncClient(net.connect(listener.port)))
            await slow[-1].send(GET)
            while made <= number:
                await trio.sleep(0.001)
        began = net.clock.monotonic()
        assert b"text 8 " in await ask(net, listener, GET)
        assert net.clock.monotonic() - began < 0.1
        slow.append(AsyncClient(net.connect(listener.port)))
        await slow[-1].send(GET)
        await trio.sleep(0.01)
        assert b"text 10 " in await ask(net, listener, GET)
        assert 0.9 < net.clock.monotonic() - began < 1.1
        assert len(listener._texts) <= _TEXTS
        for client in await crowd(net, listener):
            with suppress(OSError):  # the oldest made room
                await client.send(GET)
        before, began = made, net.clock.monotonic()
        assert b"text " in await ask(net, listener, GET)
        assert made <= before + 2
        assert net.clock.monotonic() - began < 2.5


async def test_a_client_that_comes_while_a_text_is_made_gets_the_next_one(net: Net) -> None:
    made = 0
    go_on = trio.Event()

    async def slow() -> list[bytes]:
        nonlocal made
        made += 1
        text = [b"text %d" % made]
        await go_on.wait()
        return text

    async with listening(net, slow) as listener, trio.open_nursery() as nursery:
        answers: list[bytes] = []

        async def scrape() -> None:
            answers.append((await ask(net, listener, GET))[-6:])

        nursery.start_soon(scrape)
        await net.settle()
        for _ in range(5):
            nursery.start_soon(scrape)
        await net.settle()
        go_on.set()
        await wait_until(lambda: len(answers) == 6)
        assert sorted(answers) == [b"text 1"] + [b"text 2"] * 5


async def test_a_scraper_that_goes_away_is_no_error(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(net) as listener:
        silent, rude = (AsyncClient(net.connect(listener.port)) for _ in range(2))
        silent.close()
        await rude.send(GET[:10])
        await net.settle()
        net.reset(rude.stream)
        await net.settle()
        assert b"metric 1" in await ask(net, listener, GET)
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


async def test_an_address_in_use_is_a_bind_error_and_the_port_is_given_back_at_the_end(
    net: Net,
) -> None:
    async with listening(net) as listener:
        second = MetricsListener(("127.0.0.1", listener.port), text, net.transport, net.clock)
        with pytest.raises(BindError, match="in use"):
            await second.serve()
    with pytest.raises(ConnectionRefusedError):
        net.connect(listener.port)
