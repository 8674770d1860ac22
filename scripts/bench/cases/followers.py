"""Followers of a tail: long polls that one record completes."""

from collections.abc import Iterator

from frames import FETCH, batch_of, fetch_frame, position_of, produce_frame
from sides import Side

from cases import Bench, Figures, Measure, case
from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.registry import response_codec

MARK = 0x1122334455667788
CORRELATION_ID = 4
"""Bytes before the body of a reply."""


def tail(bench: Bench, side: Side, followers: int, rate: int) -> Iterator[Measure]:
    """Milliseconds from the sending of a record to the first and the last follower that has it."""

    def measure() -> Figures:
        with side.topics(1, 1) as (topic,):
            asked = fetch_frame(topic, MARK, 1 << 20, 30_000)
            data = PartitionData(partition_index=0, high_watermark=MARK, aborted_transactions=None)
            answered = FetchableTopicResponse(topic=topic, partitions=[data])
            reply = response_codec(ApiKey.FETCH, FETCH).build(FetchResponse(responses=[answered]))
            told = bench.loads[0].run(
                "tail",
                [asked, produce_frame(topic, [0], batch_of(100), acks=1)],
                port=side.port,
                pid=side.pid,
                connections=followers,
                rate=rate,
                seconds=bench.seconds,
                warm=bench.warm,
                start=0,
                offsetAt=position_of(asked, MARK),
                watermarkAt=position_of(reply, MARK) + CORRELATION_ID,
            )
        return {
            "first p50 ms": told["first_p50"],
            "first p99 ms": told["first_p99"],
            "last p50 ms": told["last_p50"],
            "last p99 ms": told["last_p99"],
            "last max ms": told["last_max"],
            "CPU us/delivery": told["broker_cpu"] / told["deliveries"] * 1e6,
        }

    yield measure


CASES = {
    **{f"followers/{n}": case(tail, n, 50, quick=n == 100) for n in (1, 10, 100, 500, 1000)},
    "followers/1, 1000 records a second": case(tail, 1, 1000),
}
