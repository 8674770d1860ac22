"""A client that sends at a rate, alone and beside others: acks=all, 0.9 KB."""

from collections.abc import Iterator

from frames import PRODUCE, SMALL, batch_of, fetch_frame, produce_frame
from load import check_reply
from sides import FLOOR, Side

from cases import Bench, Figures, Measure, case
from protocol.api_keys import ApiKey

PER_CONNECTION = 500
"""Requests a second that one connection of the client sends."""
PRELOADED = 400
"""Batches of 16 KB that readers read over and over."""


def paced(bench: Bench, side: Side, rate: int, producers: bool, readers: bool) -> Iterator[Measure]:
    """Latency of requests at a rate, from when each was due."""
    seconds = bench.seconds if bench.quick or producers else 2 * bench.seconds
    seconds = min(seconds, 2.5) if producers else seconds
    around = seconds * 1.25 + 1

    def measure() -> Figures:
        with bench.topic(side, 3) as topic:
            words = {"port": side.port, "pid": side.pid}
            large = batch_of(16_000)
            beside = []
            if readers:
                filling = [produce_frame(topic, [2], large)] * PRELOADED
                bench.loads[2].run("chains", filling, connections=1, steps=PRELOADED, **words)
                frame = fetch_frame(topic, 0, 1 << 20, 0)
                beside.append(bench.loads[2])
                beside[-1].start(
                    "load", [frame], connections=2, inflight=1, seconds=around, **words
                )
            if producers:
                frame = produce_frame(topic, [1], large)
                beside.append(bench.loads[1])
                beside[-1].start(
                    "load", [frame], connections=2, inflight=5, seconds=around, **words
                )
            told = bench.loads[0].run(
                "paced",
                [produce_frame(topic, [0], batch_of(SMALL))],
                rate=rate,
                connections=max(rate // PER_CONNECTION, 1),
                seconds=seconds,
                warm=0.5 if beside else seconds / 4,
                **words,
            )
            # How much a reader gets at once depends on what is in memory.
            others = [load.finish(same_size=False) for load in beside]
        if side.name != FLOOR:
            check_reply(told, ApiKey.PRODUCE, PRODUCE)
        figures = {"p50 ms": told["ms_p50"], "p99 ms": told["ms_p99"], "max ms": told["ms_max"]}
        for name, other in zip(("producers'", "readers'"), reversed(others), strict=False):
            figures[f"{name} requests/s"] = other["requests"] / other["seconds"]
        if not beside:
            figures["CPU us/request"] = told["broker_cpu"] / told["requests"] * 1e6
        return figures

    yield measure


CASES = {
    f"latency/{rate} a second, {name}": case(
        paced, rate, *beside, quick=(rate, name) == (500, "producers"), floor=not any(beside)
    )
    for rate in (500, 5000)
    for name, beside in {
        "alone": (False, False),
        "producers": (True, False),
        "producers and readers": (True, True),
    }.items()
}
