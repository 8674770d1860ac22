"""Requests as unmodified clients put them on the wire, client id "golden" or the Java tools' own.

Captured from confluent-kafka 2.16, kafka-python 3.0, aiokafka 0.14 and Kafka 4.3's console tools.
Each is read whole, field for field, and written again into the same bytes.
"""

from typing import Any, NamedTuple

import pytest

from protocol.framing import RequestHeader, parse_request_header
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.coordinator_records import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerProtocolTopicPartition,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.registry import request_codec
from protocol.messages.versioned import decode_versioned


class Golden(NamedTuple):
    """A frame without its size, and what it says."""

    client: str
    version: int
    frame: str
    request: Any


SUBSCRIPTION_0 = bytes.fromhex("0000000000010006676f6c64656e00000000")
SUBSCRIPTION_3 = bytes.fromhex("0003000000010006676f6c64656effffffff00000000ffffffffffff")
OWNING_3 = bytes.fromhex("0003000000010006676f6c64656e00000004ffffffff00000000ffffffffffff")
BATCH_9 = bytes.fromhex(
    "00000000000000000000003a0000000002b37f298c000000000000000001a1fbf684ad000001a1fbf684ad"
    "00000000000000050000000000000000000110000000026b027600"
)
BATCH_7 = bytes.fromhex(
    "00000000000000000000003affffffff02d498d966000000000000000001a1fbf690cb000001a1fbf690cb"
    "ffffffffffffffffffff000000000000000110000000026b027600"
)

FRAMES = [
    Golden(
        "confluent-kafka",
        3,
        "00120003000000010006676f6c64656e0017636f6e666c75656e742d6b61666b612d707974686f6e"
        "16322e31362e312d72646b61666b612d322e31362e3000",
        ApiVersionsRequest(
            client_software_name="confluent-kafka-python",
            client_software_version="2.16.1-rdkafka-2.16.0",
        ),
    ),
    Golden("aiokafka", 0, "00120000000000010006676f6c64656e", ApiVersionsRequest()),
    Golden(
        "kafka-python",
        4,
        "00120004000000010006676f6c64656e000d6b61666b612d707974686f6e07332e302e313200",
        ApiVersionsRequest(client_software_name="kafka-python", client_software_version="3.0.12"),
    ),
    Golden(
        "confluent-kafka",
        13,
        "0003000d000000020006676f6c64656e0002000000000000000000000000000000000767"
        "6f6c64656e00010000",
        MetadataRequest(
            topics=[MetadataRequestTopic(name="golden")], allow_auto_topic_creation=True
        ),
    ),
    Golden(
        "aiokafka",
        5,
        "00030005000000030006676f6c64656e000000010006676f6c64656e01",
        MetadataRequest(topics=[MetadataRequestTopic(name="golden")]),
    ),
    Golden(
        "java",
        5,
        "00160005000000020010636f6e736f6c652d70726f647563657200007fffffffffffffffffffffffffff00",
        InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout_ms=0x7FFF_FFFF,
            producer_id=-1,
            producer_epoch=-1,
        ),
    ),
    Golden(
        "kafka-python",
        9,
        "00000009000000030006676f6c64656e0000ffff000075300207676f6c64656e020000000047"
        + BATCH_9.hex()
        + "000000",
        ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    name="golden",
                    partition_data=[PartitionProduceData(index=0, records=BATCH_9)],
                )
            ],
        ),
    ),
    Golden(
        "aiokafka",
        7,
        "00000007000000020006676f6c64656effff000100009c40000000010006676f6c64656e"
        "000000010000000000000046" + BATCH_7.hex(),
        ProduceRequest(
            acks=1,
            timeout_ms=40_000,
            topic_data=[
                TopicProduceData(
                    name="golden",
                    partition_data=[PartitionProduceData(index=0, records=BATCH_7)],
                )
            ],
        ),
    ),
    Golden(
        "java",
        17,
        "000100110000000b0010636f6e736f6c652d636f6e73756d657200000001f4000000010320000000"
        "00000000000000000274747474747474747474747474747474020000000000000000000000000000"
        "0000ffffffffffffffffffffffff001000000000010100",
        FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=52_428_800,
            session_epoch=0,
            topics=[
                FetchTopic(
                    topic_id=b"t" * 16,
                    partitions=[
                        FetchPartition(current_leader_epoch=0, partition_max_bytes=1_048_576)
                    ],
                )
            ],
        ),
    ),
    Golden(
        "aiokafka",
        11,
        "0001000b000000050006676f6c64656effffffff000001f400000001032000000000000000ffffffff"
        "000000010006676f6c64656e0000000100000000ffffffff0000000000000000ffffffffffffffff"
        "00100000000000000000",
        FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=52_428_800,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic="golden", partitions=[FetchPartition(partition_max_bytes=1_048_576)]
                )
            ],
        ),
    ),
    Golden(
        "kafka-python",
        11,
        "0002000b000000030006676f6c64656e00ffffffff000207676f6c64656e0200000000ffffffff"
        "fffffffffffffffe00000000000000",
        ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(name="golden", partitions=[ListOffsetsPartition(timestamp=-2)])
            ],
            timeout_ms=0,
        ),
    ),
    Golden(
        "java",
        9,
        "000b0009000000070010636f6e736f6c652d636f6e73756d65720002670000afc8000493e0046d2d31"
        "0009636f6e73756d6572030672616e67651d"
        + SUBSCRIPTION_3.hex()
        + "0013636f6f70657261746976652d737469636b7921"
        + OWNING_3.hex()
        + "002e6e65656420746f2072652d6a6f696e20776974682074686520676976656e206d656d6265722d69"
        "643a206d2d3100",
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            member_id="m-1",
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION_3),
                JoinGroupRequestProtocol(name="cooperative-sticky", metadata=OWNING_3),
            ],
            reason="need to re-join with the given member-id: m-1",
        ),
    ),
    Golden(
        "aiokafka",
        5,
        "000b0005000000030006676f6c64656e000167000027100000271000036d2d31ffff0008636f6e7375"
        "6d657200000001000a726f756e64726f62696e00000012" + SUBSCRIPTION_0.hex(),
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="m-1",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="roundrobin", metadata=SUBSCRIPTION_0)],
        ),
    ),
    Golden(
        "confluent-kafka",
        9,
        "00090009000000080006676f6c64656e0002026700ffffffff0207676f6c64656e020000000000000100",
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="g",
                    member_epoch=-1,
                    topics=[OffsetFetchRequestTopics(name="golden", partition_indexes=[0])],
                )
            ],
            require_stable=True,
        ),
    ),
    Golden(
        "aiokafka",
        3,
        "00080003000000060006676f6c64656e0001670000000100036d2d31ffffffffffffffff0000000100"
        "06676f6c64656e000000010000000000000000000000000000",
        OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=1,
            member_id="m-1",
            retention_time_ms=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name="golden",
                    partitions=[
                        OffsetCommitRequestPartition(committed_offset=0, committed_metadata="")
                    ],
                )
            ],
        ),
    ),
    Golden(
        "java",
        5,
        "000d0005000000180010636f6e736f6c652d636f6e73756d657200026702046d2d31001d7468652063"
        "6f6e73756d6572206973206265696e6720636c6f7365640000",
        LeaveGroupRequest(
            group_id="g",
            members=[MemberIdentity(member_id="m-1", reason="the consumer is being closed")],
        ),
    ),
]


@pytest.mark.parametrize(
    "golden", FRAMES, ids=[f"{g.client}-{type(g.request).__name__}-v{g.version}" for g in FRAMES]
)
def test_a_clients_request_is_read_and_written_again(golden: Golden) -> None:
    frame = bytes.fromhex(golden.frame)
    fields = parse_request_header(frame, memoryview(frame), 0, len(frame))
    header = RequestHeader(*fields)
    assert header.api_version == golden.version
    assert header.client_id in ("golden", "console-consumer", "console-producer")
    codec = request_codec(header.api_key, header.api_version)
    assert codec.parse(frame[header.body_offset :]) == golden.request
    assert codec.build(golden.request) == frame[header.body_offset :]


def test_what_clients_put_into_the_bytes_of_the_group_protocol() -> None:
    for data, version in ((SUBSCRIPTION_0, 0), (SUBSCRIPTION_3, 3)):
        found, subscription = decode_versioned(ConsumerProtocolSubscription, data)
        assert (found, subscription.topics) == (version, ["golden"])
    librdkafka = bytes.fromhex("0000000000010006676f6c64656e000000010000000000000000")
    _, assignment = decode_versioned(ConsumerProtocolAssignment, librdkafka)
    assert assignment.assigned_partitions == [
        ConsumerProtocolTopicPartition(topic="golden", partitions=[0])
    ]
