"""Requests on their way from a simulated client to the broker, through a network that may be bad.

Each client has a `Wire`: one connection, made anew when it broke, one request at a time. Which
fault meets a request is drawn from the plan (`tests.anomalies.faults.plan`) with the randomness of
that client; late and repeated requests travel on connections of their own.
"""

import zlib
from contextlib import suppress
from random import Random
from typing import Any, Final

import trio

from broker.world.streams import send_all
from protocol.api_keys import ApiKey
from tests.anomalies.faults.frames import RequestFrame, answer_codes
from tests.anomalies.faults.plan import NO_FAULTS, Fault
from tests.anomalies.workload.clients import REQUEST_TIMEOUT_MS
from tests.simulation.trace import Trace
from tests.support.memory_client import receive_frame
from tests.support.memory_transport import MemoryNetwork, MemoryTransport
from tests.support.virtual_time import VirtualClock
from tests.support.wire_client import read_response, request_frame

HOST: Final = "broker"
PORT: Final = 9092
_ANSWER_TIMEOUT_S: Final = 5.0


class Unanswered(ConnectionError):
    """No answer came, so the outcome of the request is unknown."""


class Network:
    """The things that all clients share: ports, the plan of faults, requests on their way."""

    def __init__(self, clock: VirtualClock, trace: Trace, late: trio.Nursery) -> None:
        """`clock` is the network's own; `late` runs the requests for which no client waits."""
        self.ports = MemoryNetwork()
        self.clock = clock
        self.trace = trace
        self.plan = NO_FAULTS
        self.late_requests = 0
        self._late = late
        self._wires: list[Wire] = []

    def wire(self, name: str, clock: VirtualClock, random: Random) -> "Wire":
        """Make the connection of one client."""
        made = Wire(self, name, clock, random)
        self._wires.append(made)
        return made

    def drop_connections(self, share: float, random: Random) -> None:
        """Close this share of all connections, now."""
        for wire in self._wires:
            if wire.is_connected and random.random() < share:
                wire.abort()

    def send_later(self, frame: RequestFrame, who: str, after_s: float) -> None:
        """Deliver a request later, on a connection of its own; its answer is dropped."""
        self.late_requests += 1
        self._late.start_soon(self._deliver, frame, who, after_s)

    async def _deliver(self, frame: RequestFrame, who: str, after_s: float) -> None:
        try:
            await self.clock.sleep(after_s)
            with suppress(OSError):
                await self._exchange(frame, who)
        finally:
            self.late_requests -= 1

    async def _exchange(self, frame: RequestFrame, who: str) -> None:
        """Send a request, and parse the answer if one comes. Raises OSError."""
        stream = MemoryTransport(self.ports).connect(HOST, PORT, from_host=who)
        try:
            with self.clock.timeout(_ANSWER_TIMEOUT_S):
                await send_all(stream, frame.framed)
                answer_codes(frame, await receive_frame(stream))
        finally:
            stream.close()


class Wire:
    """One client's connection; a `Line` of `tests.anomalies.workload.raw`."""

    def __init__(self, network: Network, name: str, clock: VirtualClock, random: Random) -> None:
        self._network = network
        self._name = name
        self._clock = clock
        self._random = random
        self._stream: Any = None
        self._transport = MemoryTransport(network.ports)
        self._correlation_id = 0
        self.monotonic = clock.monotonic
        self.wall_ms = clock.wall_ms
        self.pause = clock.sleep

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection; it may be broken already."""
        return self._stream is not None

    def close(self) -> None:
        """Hang up."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def abort(self) -> None:
        """Reset the connection, as the network does."""
        if self._stream is not None:
            self._stream.abort()

    async def call(
        self, key: int, version: int, request: Any, patience_s: float = REQUEST_TIMEOUT_MS / 1000
    ) -> Any:
        """Send a request; return its answer. Raises OSError if there is none in time."""
        self._correlation_id += 1
        name, random, network = self._name, self._random, self._network
        framed = request_frame(
            key, version, request, correlation_id=self._correlation_id, client_id=name
        )
        frame = RequestFrame(framed[4:], ApiKey(key), version)
        network.trace.note(name, f"> {frame} {zlib.crc32(framed):08x}")
        fault = network.plan.draw(frame, random)
        await self._clock.sleep(random.expovariate(2000))
        if fault is not None:
            network.trace.note(name, f"fault: {fault.value}")
        if fault is Fault.DELAY:
            await self._clock.sleep(random.uniform(0, network.plan.longest_s / 4))
        elif fault in (Fault.LATE, Fault.REPLAY):
            network.send_later(frame, name, random.uniform(0.02, network.plan.longest_s))
        if fault in (Fault.CUT, Fault.LATE):
            self.close()
            raise Unanswered(f"{frame}: {fault.value}")
        try:
            answer = await self._exchange(framed, patience_s)
        except OSError:
            self.close()
            network.trace.note(name, f"  {frame} unanswered")
            raise
        if fault is Fault.DROP_ANSWER:
            self.close()
            raise Unanswered(f"{frame}: {fault.value}")
        network.trace.note(name, f"< {frame} {zlib.crc32(answer):08x}")
        echoed, response = read_response(key, version, answer)
        assert echoed == self._correlation_id, f"{frame}: the answer to {echoed}"
        return response

    async def _exchange(self, framed: bytes, patience_s: float) -> bytes:
        with self._clock.timeout(patience_s):
            if self._stream is None:
                self._stream = self._transport.connect(HOST, PORT, from_host=self._name)
            await send_all(self._stream, framed)
            return await receive_frame(self._stream)
        raise Unanswered("in time")
