"""Frames that no honest client sends; and the bugs that the fuzzer would notice."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.api.heartbeat import HeartbeatHandler
from protocol.errors import ErrorCode, KafkaError
from storage.waits import PAUSE, Signal
from tests.fuzz.findings import Findings
from tests.fuzz.handshakes import run_handshakes
from tests.fuzz.run import Chunk, Limits, Result, prepare, run_chunk
from tests.fuzz.watch import greatest_rss

GENEROUS = Limits(turn_s=2.0)
"""Tests share the machine with others, and a codec is made at its first use."""


def run(seed: int, frames: int, limits: Limits = GENEROUS) -> Result:
    return run_chunk(Chunk(seed=seed, number=0, frames=frames), limits)


def test_some_hundred_frames() -> None:
    result = run(1, 300)
    assert not result.findings, "\n".join(result.findings.lines())
    assert result.frames == 300
    assert result.answers > 150
    assert result.acknowledged == 6


@pytest.mark.parametrize("seed", range(4))
def test_some_hundred_handshakes(seed: int) -> None:
    result = run_handshakes(seed, 300)
    assert not result.findings, result.findings
    assert result.clients == 300
    assert result.succeeded > 10
    assert sum(result.refused.values()) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_ten_thousand_handshakes(seed: int) -> None:
    result = run_handshakes(seed, 1_000)
    assert not result.findings, result.findings


@pytest.mark.slow
@pytest.mark.parametrize("number", range(15))
def test_thirty_thousand_frames(number: int) -> None:
    prepare()
    result = run_chunk(Chunk(seed=1, number=number, frames=2_000), GENEROUS)
    assert not result.findings, "\n".join(result.findings.lines())


def test_the_same_seed_is_the_same_run() -> None:
    assert run(2, 60).ends == run(2, 60).ends


# ---- would it notice?


def kinds(findings: Findings) -> set[str]:
    return {what for what, _ in findings.first}


@pytest.fixture
def heartbeats(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that gives every heartbeat another behaviour."""

    def become(handler: Any) -> None:
        monkeypatch.setattr(HeartbeatHandler, "__call__", handler)

    yield become


async def crash(*_: object) -> None:
    raise RuntimeError("a bug")


async def server_error(*_: object) -> None:
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


async def wait_for_ever(*_: object) -> None:
    await Signal().parked()


async def think_long(*_: object) -> None:
    until = time.thread_time() + 0.2
    while time.thread_time() < until:
        pass
    raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)


async def never_end(*_: object) -> None:
    while True:
        pass


async def grow(*_: object) -> None:
    await PAUSE
    bytearray(b"x") * (greatest_rss() + (100 << 20))  # more than the process ever had
    raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize(
    ("handler", "seen"),
    [
        (crash, {"traceback", "server error"}),
        (server_error, {"server error"}),
        (wait_for_ever, {"silence"}),
        (think_long, {"long turn"}),
        (never_end, {"stall"}),
        (grow, {"memory"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_a_bug_does_is_found(heartbeats: Any, handler: Any, seen: set[str]) -> None:
    heartbeats(handler)
    frame_s = 0.3 if handler is never_end else 60.0
    limits = Limits(turn_s=0.15, frame_s=frame_s, memory_bytes=50 << 20)
    found = kinds(run(3, 200, limits).findings)
    assert seen <= found
