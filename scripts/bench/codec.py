#!/usr/bin/env python
"""Measures codecs: generated code against the same declaration interpreted by construct.

    .venv/bin/python scripts/bench/codec.py [--rounds N]

Microseconds per message, headers included, best of N rounds; then the costs of a start: imports and
the generation of a codec, each in a fresh interpreter. It measures wall time of one process: run it
on a quiet machine, and believe differences above a tenth only.
"""

import argparse
import io
import struct
import subprocess
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from protocol.framing import parse_request_header
from protocol.messages import fetch, metadata, produce
from protocol.schema import Api

RESPONSE_HEADER = struct.Struct(">i").pack
HEADER = bytes.fromhex("0000000900000001000a62656e63682d74657374") + b"\0"
START_UP = """
import time
start = time.perf_counter()
from protocol.framing import parse_request_header
from protocol.messages.registry import SPECS, request_api, request_codec
from protocol.messages.registry import response_api, response_codec
imported = time.perf_counter()
request_codec(18, 4).parse_at, response_codec(18, 4).build_into
first = time.perf_counter()
for key in SPECS:
    request_api(key), response_api(key)
declared = time.perf_counter()
codecs = [api(key).codec(v) for key in SPECS for api in (request_api, response_api)
          for v in api(key).versions]
for codec in codecs:
    codec.parse_at
made = time.perf_counter()
print(f"import of framing, registry, construct {(imported - start) * 1e3:7.1f} ms")
print(f"first codec pair (ApiVersions v4)      {(first - imported) * 1e3:7.1f} ms")
print(f"declarations of all {len(SPECS)} APIs           {(declared - first) * 1e3:7.1f} ms")
print(f"one codec, one direction               {(made - declared) * 1e3 / len(codecs):7.2f} ms")
"""


def produce_request(topics: int, partitions: int, size: int) -> Any:
    return produce.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            produce.TopicProduceData(
                name=f"topic-{topic}",
                partition_data=[
                    produce.PartitionProduceData(index=index, records=bytes(size))
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def produce_response(topics: int, partitions: int) -> Any:
    return produce.ProduceResponse(
        responses=[
            produce.TopicProduceResponse(
                name=f"topic-{topic}",
                partition_responses=[
                    produce.PartitionProduceResponse(
                        index=index, base_offset=123, log_start_offset=0
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ]
    )


def fetch_request(topics: int, partitions: int) -> Any:
    return fetch.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=[
            fetch.FetchTopic(
                topic=f"topic-{topic}",
                partitions=[
                    fetch.FetchPartition(
                        partition=index, fetch_offset=7, partition_max_bytes=1 << 20
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def fetch_response(topics: int, partitions: int, size: int) -> Any:
    return fetch.FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(
                topic=f"topic-{topic}",
                partitions=[
                    fetch.PartitionData(
                        partition_index=index,
                        high_watermark=9,
                        last_stable_offset=9,
                        log_start_offset=0,
                        aborted_transactions=None,
                        records=bytes(size),
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ]
    )


def metadata_response(topics: int, partitions: int) -> Any:
    return metadata.MetadataResponse(
        brokers=[metadata.MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        cluster_id="abcdefghijklmnopqrstuv",
        controller_id=1,
        topics=[
            metadata.MetadataResponseTopic(
                name=f"topic-{topic}",
                partitions=[
                    metadata.MetadataResponsePartition(
                        partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1]
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def parsing(api: Api, version: int, value: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    codec, node = api.codec(version), api.at(version)
    buf = bytearray(HEADER + codec.build(value))
    mv, end, parse_at = memoryview(buf), len(buf), codec.parse_at
    body = bytes(buf[len(HEADER) :])

    def generated() -> Any:
        header = parse_request_header(buf, mv, 0, end)
        return parse_at(buf, mv, header.body_offset, end)

    def interpreted() -> Any:
        return node.parse_stream(io.BytesIO(body))

    return generated, interpreted


def building(api: Api, version: int, value: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    codec, node = api.codec(version), api.at(version)
    build_into, flexible = codec.build_into, api.flexible(version)

    def generated() -> Any:
        pieces = [RESPONSE_HEADER(7) + b"\0" * flexible]
        build_into(value, pieces.append)
        return pieces

    def interpreted() -> Any:
        stream = io.BytesIO()
        node.build_stream(value, stream)
        return stream

    return generated, interpreted


CASES = {
    "parse Produce v9 1x1, 16 KB": parsing(produce.ProduceRequest, 9, produce_request(1, 1, 16384)),
    "parse Produce v9 10x10, 1 KB": parsing(
        produce.ProduceRequest, 9, produce_request(10, 10, 1024)
    ),
    "build Produce response v9 1x1": building(produce.ProduceResponse, 9, produce_response(1, 1)),
    "build Produce response v9 10x10": building(
        produce.ProduceResponse, 9, produce_response(10, 10)
    ),
    "parse Fetch v12 1x1": parsing(fetch.FetchRequest, 12, fetch_request(1, 1)),
    "parse Fetch v12 10x10": parsing(fetch.FetchRequest, 12, fetch_request(10, 10)),
    "build Fetch response v12 1x1, 16 KB": building(
        fetch.FetchResponse, 12, fetch_response(1, 1, 16384)
    ),
    "build Fetch response v12 10x10, 1 KB": building(
        fetch.FetchResponse, 12, fetch_response(10, 10, 1024)
    ),
    "build Metadata response v12 10x10": building(
        metadata.MetadataResponse, 12, metadata_response(10, 10)
    ),
}


def best(function: Callable[[], Any], rounds: int) -> float:
    timer = timeit.Timer(function)
    number, _ = timer.autorange(lambda _, seconds: None)
    number = max(1, number // 4)
    return min(timer.repeat(rounds, number)) / number * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(f"{'us per message':40}{'generated':>10}{'interpreted':>13}{'ratio':>8}")
    for name, (generated, interpreted) in CASES.items():
        fast, slow = best(generated, rounds), best(interpreted, rounds)
        print(f"{name:40}{fast:10.2f}{slow:13.1f}{slow / fast:8.1f}")
    print()
    subprocess.run([sys.executable, "-c", START_UP], cwd=Path(__file__).parents[2], check=True)


if __name__ == "__main__":
    main()
