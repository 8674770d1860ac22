"""The good client: ApiVersions and a small produce every 20 ms, in a process of its own.

    python -m tests.hostile.good_client PORT TOPIC

It says `ready` after its first round. When its standard input ends it prints one line of JSON: how
long the slowest answers took, in milliseconds, and how many records were acknowledged. Its records
are numbered: the record at offset n of the topic's partition 0 has the value `n`. It is a process
of its own, because a thread of the attacker's process would wait for the attacker.
"""

import json
import os
import select
import sys
import time
from contextlib import suppress
from typing import Any

from protocol.api_keys import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.records.builder import build_batch
from tests.support.produce_requests import one_batch
from tests.support.wire_client import WireClient

PERIOD_S = 0.02
PATIENCE_S = 60
SLOWEST = 5


def _produce(topic: str, number: int) -> Any:
    batch = build_batch([(int(time.time() * 1000), None, str(number).encode(), ())])
    return one_batch(topic, batch)


def _stop_asked_for(wait_s: float) -> bool:
    return bool(select.select([sys.stdin], [], [], max(wait_s, 0))[0])


def main(port: int, topic: str) -> None:
    with suppress(PermissionError):
        os.nice(-10)  # what is measured is the broker, not who gets the processor first
    waits: list[tuple[float, str]] = []
    acknowledged = 0
    asked = ApiVersionsRequest(client_software_name="good", client_software_version="1")
    with WireClient(port, timeout_s=PATIENCE_S) as client:
        began = time.monotonic()
        while True:
            before = time.monotonic()
            client.call(ApiKey.API_VERSIONS, 3, asked)
            between = time.monotonic()
            answer = client.call(ApiKey.PRODUCE, 9, _produce(topic, acknowledged))
            after = time.monotonic()
            (part,) = answer.responses[0].partition_responses
            if part.error_code or part.base_offset != acknowledged:
                raise SystemExit(f"produce {acknowledged}: {part}")
            acknowledged += 1
            at = f" {before - began:.1f} s after the begin"
            waits += [(between - before, "ApiVersions" + at), (after - between, "Produce" + at)]
            waits = sorted(waits, reverse=True)[:SLOWEST]
            if acknowledged == 1:
                print("ready", flush=True)
            if _stop_asked_for(before + PERIOD_S - time.monotonic()):
                break
    slowest = [(round(seconds * 1000, 1), what) for seconds, what in waits]
    print(json.dumps({"acknowledged": acknowledged, "slowest": slowest}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
