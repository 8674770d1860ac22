"""A proxy between clients and broker that loses answers, delays, repeats and hangs up.

It understands frames, and draws the fault of each request from a `FaultPlan` by the seed. (The
machine decides the order in which requests arrive, so a seed repeats the kinds of faults and not
the history.)

The proxy runs its own event loop in a thread; everything public may be called from outside.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.anomalies.faults.frames import SIZE, RequestFrame, answer_codes, request_frame
from tests.anomalies.faults.plan import NO_FAULTS, Fault, FaultPlan

HOST: Final = "127.0.0.1"
_ANSWER_TIMEOUT_S: Final = 5.0


@dataclass(slots=True, eq=False)
class _Link:
    """One client's connection and the one to the broker that serves it."""

    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    swallow: deque[bool] = field(default_factory=deque)
    """For each request that has no answer yet: whether the proxy shall swallow the answer."""

    def hang_up(self) -> None:
        self.client.close()
        self.broker.close()


class FaultProxy:
    """Listens in the broker's place. `broker_port` may be set later, and anew after each of its
    starts."""

    def __init__(self, random: Random, plan: FaultPlan = NO_FAULTS) -> None:
        self.plan = plan
        self.broker_port = 0
        self._socket = socket.create_server((HOST, 0))
        self.port: int = self._socket.getsockname()[1]
        self.counts: Counter[str] = Counter()
        """Faults by kind and request."""
        self.repeats_answered: Counter[str] = Counter()
        """The broker's answers to late and repeated requests."""
        self._random = random
        self._loop = asyncio.new_event_loop()
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)
        self._started = threading.Event()

    # ---- from outside

    def start(self) -> "FaultProxy":
        """Serve those who connect to `port`."""
        self._thread.start()
        assert self._started.wait(10), "the fault proxy did not start"
        return self

    def stop(self) -> None:
        """Close all connections, and end."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def hang_up(self, share: float = 1.0) -> None:
        """Close this share of all connections, now."""
        self._loop.call_soon_threadsafe(self._hang_up, share)

    def calm(self) -> None:
        """End the faults; late requests still arrive."""
        self.plan = NO_FAULTS

    @property
    def has_late_requests(self) -> bool:
        """Whether late or repeated requests are still on their way."""
        return bool(self._tasks)

    def __enter__(self) -> "FaultProxy":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- the loop

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, sock=self._socket))
        self._started.set()
        self._loop.run_forever()
        server.close()
        for link in self._links:
            link.hang_up()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    def _hang_up(self, share: float) -> None:
        for link in list(self._links):
            if self._random.random() < share:
                self.counts["connections dropped"] += 1
                link.hang_up()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await asyncio.open_connection(HOST, self.broker_port)
        except OSError:
            writer.close()  # As if the broker had refused.
            return
        link = _Link(writer, up_writer)
        self._links.add(link)
        answers = asyncio.ensure_future(self._pass_answers(up_reader, link))
        try:
            await self._pass_requests(reader, link)
        except (OSError, asyncio.IncompleteReadError):
            pass  # One of the two hung up.
        finally:
            link.hang_up()
            answers.cancel()
            self._links.discard(link)
            with contextlib.suppress(asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
                await answers

    async def _pass_requests(self, reader: asyncio.StreamReader, link: _Link) -> None:
        while True:
            data = await _read_frame(reader)
            try:
                request = request_frame(data)
            except (struct.error, ValueError):
                return
            fault = self.plan.draw(request, self._random)
            if fault is not None:
                self.counts[f"{fault.value} {request.key.name}"] += 1
            if fault is Fault.CUT:
                return
            if fault is Fault.LATE:
                self._later(request)
                return
            if fault is Fault.DELAY:
                await asyncio.sleep(self._random.uniform(0, self.plan.longest_s / 4))
            elif fault is Fault.REPLAY:
                self._later(request)
            link.swallow.append(fault is Fault.DROP_ANSWER)
            link.broker.write(request.framed)
            await link.broker.drain()

    async def _pass_answers(self, reader: asyncio.StreamReader, link: _Link) -> None:
        try:
            while True:
                data = await _read_frame(reader)
                if link.swallow and link.swallow.popleft():
                    return
                link.client.write(SIZE.pack(len(data)) + data)
                await link.client.drain()
        finally:
            link.hang_up()

    def _later(self, request: RequestFrame) -> None:
        self._spawn(self._deliver(request, self._random.uniform(0.02, self.plan.longest_s)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, request: RequestFrame, after_s: float) -> None:
        await asyncio.sleep(after_s)
        try:
            reader, writer = await asyncio.open_connection(HOST, self.broker_port)
            try:
                writer.write(request.framed)
                answer = await asyncio.wait_for(_read_frame(reader), _ANSWER_TIMEOUT_S)
            finally:
                writer.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            self.repeats_answered[f"{request}: no answer"] += 1
            return
        said = "+".join(sorted(answer_codes(request, answer)))
        self.repeats_answered[f"{request}: {said}"] += 1


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = SIZE.unpack(await reader.readexactly(SIZE.size))
    return await reader.readexactly(size)
