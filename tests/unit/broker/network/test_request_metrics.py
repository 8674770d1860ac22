"""Every phase of a request, as connections note them: what counts, and that the phases add up."""

from typing import Any

import pytest
import trio

from broker.network.request_metrics import PHASES, RequestMetrics, RequestTimes, note_sent
from broker.request import RequestContext
from protocol.messages.heartbeat import HeartbeatResponse
from storage.distribution import FOLD
from storage.waits import call, sleep
from tests.support.connection_requests import HEARTBEAT, heartbeat
from tests.support.fake_handlers import Parking, running_server
from tests.support.networks import Net

KINDS = ("ready", "parked", "worker", "aside")


def answering(kind: str, pending: list[Parking]) -> Any:
    async def in_thread() -> HeartbeatResponse:
        await call(int)
        return HeartbeatResponse()

    async def at_a_time() -> HeartbeatResponse:
        await sleep(0.02)
        return HeartbeatResponse()

    def handler(ctx: RequestContext, request: Any) -> Any:
        if kind == "worker":
            return in_thread()
        if kind == "aside":
            return at_a_time()
        if kind == "parked":
            pending.append(Parking())
            return pending[-1]
        return HeartbeatResponse()

    return handler


def sums(times: RequestTimes) -> dict[str, float]:
    return {phase: times.phases[phase].total_s for phase in PHASES}


@pytest.mark.parametrize("kind", KINDS)
async def test_the_phases_add_up_to_the_total(
    net: Net, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending: list[Parking] = []

    async def slow_thread(work: Any, *values: Any, limiter: Any = None) -> Any:
        await trio.sleep(0.02)
        return work(*values)

    async with running_server(net, {HEARTBEAT: answering(kind, pending)}) as harness:
        monkeypatch.setattr(net.workers, "in_thread", slow_thread)
        client = await harness.connect()
        await client.send(b"".join(map(heartbeat, range(5))))
        for number in range(5):
            if kind == "parked":
                await net.settle()
                await trio.sleep(0.02)
                pending[number].complete(HeartbeatResponse())
            await client.response(HEARTBEAT, 4, number)
        times = harness.requests.statistics().requests["Heartbeat"]
        assert {times.phases[phase].count for phase in PHASES} == {5}
        found = sums(times)
        total = found.pop("total")
        # The last reading of the clock is when a parked reply continues, so no time is lost.
        assert sum(found.values()) == pytest.approx(total, abs=0.01)
        if kind != "ready":
            waited = found["local" if kind == "worker" else "remote"]
            assert waited >= 5 * 0.02 * 0.9


def test_replies_that_leave_together_wait_for_the_last() -> None:
    metrics = RequestMetrics("Produce")
    note_sent([metrics] * 3, [1.1, 1.2, 1.4], 1.0, 1.4, 1.5)
    times = metrics.snapshot(2.0)
    found = sums(times)
    assert found["response_queue"] == pytest.approx(0.3 + 0.2)
    assert found["send"] == pytest.approx(3 * 0.1)
    assert found["total"] == pytest.approx(3 * 0.5)
    assert times.phases["response_queue"].count == 3


def test_what_took_no_time_is_counted_as_zero() -> None:
    metrics = RequestMetrics("Metadata")
    for _ in range(FOLD + 7):
        metrics.note_queue(0.001)
        metrics.note_local(0.001)
        note_sent([metrics], [1.1], 1.0, 1.1, 1.2)
    metrics.note_remote(0.5)
    times = metrics.snapshot(2.0)
    assert {snapshot.count for snapshot in times.phases.values()} == {FOLD + 7}
    median, most = times.phases["remote"].quantiles_s((0.5, 1.0))
    assert median < 1e-6
    assert 0.5 < most <= 0.625


def test_a_thousand_requests_are_counted_without_a_scrape() -> None:
    metrics = RequestMetrics("Fetch")
    for _ in range(FOLD):
        note_sent([metrics], [1.1], 1.0, 1.1, 1.2)
    assert not metrics.waiting
