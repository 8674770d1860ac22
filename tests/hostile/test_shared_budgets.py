"""One attacker with many connections takes the things that all clients share: memory for requests,
the child process that opens batches, the metrics' listener. The honest client has its address."""

import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.records.compression import CompressionType
from tests.hostile.attacks import create_topic, produce
from tests.hostile.bombs import honest_records, one_large_value
from tests.hostile.squatters import reader_that_stops, squatting, trickling_frame
from tests.support.broker_process import BrokerProcess
from tests.support.produce_requests import one_batch
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

TOPIC = "honest"
PATIENCE_S = 300


def produce_s(client: WireClient, batch: bytes) -> float:
    """Produce a batch; return the seconds that it takes."""
    request = one_batch(TOPIC, batch)
    began = time.monotonic()
    answer = client.call(ApiKey.PRODUCE, 9, request)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return time.monotonic() - began


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def metrics_port(broker: BrokerProcess) -> int:
    """Return the port that the log names."""
    (line,) = (line for line in broker.output().splitlines() if "Metrics on" in line)
    return int(line.partition(", port ")[2].split()[0])


def test_thirty_that_announce_ninety_megabytes_and_trickle(tmp_path: Path) -> None:
    """Each batch once took more than a minute."""
    limit = 48 << 20
    settings = {"incomplete.request.max.bytes": str(limit), "metrics.http.listener": "127.0.0.1:0"}
    batches = [honest_records(count, b"v" * 1000, CompressionType.NONE) for count in (20, 900)]
    with (
        BrokerProcess(tmp_path, settings) as broker,
        WireClient(broker.port, timeout_s=PATIENCE_S) as client,
    ):
        create_topic(broker.port, TOPIC)

        def held() -> float:
            name = "kafka_server_socketservermetrics_incomplete_request_bytes "
            text = scrape(metrics_port(broker))
            return float(text.partition(f"\n{name}")[2].partition("\n")[0])

        with squatting(30, trickling_frame(broker.port, 90_000_000)):
            wait_until(lambda: held() >= limit, 60)
            for _ in range(10):
                for batch in batches:
                    assert produce_s(client, batch) < 1.5


def test_eighty_bombs_of_eight_kilobytes(tmp_path: Path) -> None:
    """A produce once waited for all of them, a minute and a half."""
    bomb, honest = one_large_value(250_000_000), honest_records(600_000, b"v" * 30)
    assert len(bomb) < 8192
    settings = {"message.max.bytes": "8388608"}
    with (
        BrokerProcess(tmp_path, settings) as broker,
        WireClient(broker.port, timeout_s=PATIENCE_S) as client,
        ThreadPoolExecutor(80) as bombers,
    ):
        create_topic(broker.port, TOPIC)
        create_topic(broker.port, "bombed")
        produce_s(client, honest)
        sent = [bombers.submit(produce, broker.port, "bombed", bomb) for _ in range(80)]

        def done() -> int:
            return sum(one.done() for one in sent)

        wait_until(lambda: done() > 0, 60)
        before = done()
        took = [produce_s(client, honest) for _ in range(3)]
        assert done() - before <= 2 * len(took), "it waited for more than the one that was at it"
        assert done() < 70, "they were over"


def test_two_hundred_readers_of_metrics_that_stop(tmp_path: Path) -> None:
    """The listener once refused all others."""
    settings = {"metrics.http.listener": "127.0.0.1:0"}
    with BrokerProcess(tmp_path, settings) as broker:
        port = metrics_port(broker)
        create_topic(broker.port, "many", 2000)
        assert len(scrape(port)) > 1 << 20, "it fits into the buffers of a socket"
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        with squatting(200, reader_that_stops(port, request)):
            time.sleep(1)  # for the attack to begin: nothing says that it has
            for _ in range(10):
                began = time.monotonic()
                assert scrape(port).endswith("\n")
                assert time.monotonic() - began < 3
