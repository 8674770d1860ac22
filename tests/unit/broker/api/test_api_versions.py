import kio.schema.api_versions.v0.response as kio_v0
import pytest
from kio.serial import entity_reader

from broker.api.api_versions import (
    API,
    ApiVersionsHandler,
    unsupported_version_response,
)
from broker.registry import ADVERTISED
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.registry import SPECS, response_codec
from tests.support.api_calls import call

KEY = ApiKey.API_VERSIONS


class FakeFeatures:
    """The finalized features of a cluster, and their epoch."""

    def __init__(self, epoch: int, **levels: int) -> None:
        self.epoch = epoch
        self.levels = {name.replace("_", "."): level for name, level in levels.items()}


HANDLER = ApiVersionsHandler(ADVERTISED, FakeFeatures(0, transaction_version=2), "ours", 1)


def request(name: str = "librdkafka", version: str = "2.16.0") -> object:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", range(API.versions[0], API.versions[1] + 1))
def test_every_version_lists_every_api(version: int) -> None:
    response = call(HANDLER, KEY, version, request() if version >= 3 else ApiVersionsRequest())
    assert response.error_code == ErrorCode.NONE
    listed = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert listed == {int(key): versions for key, versions in ADVERTISED.items()}
    assert [api.api_key for api in response.api_keys] == sorted(listed)
    # S-TXN-7; a supported feature that begins at level 0 is for v4 only.
    supported = [(f.name, f.min_version, f.max_version) for f in response.supported_features]
    assert supported == ([("transaction.version", 0, 2)] if version >= 4 else [])
    finalized = [(f.name, f.max_version_level) for f in response.finalized_features]
    assert finalized == ([("transaction.version", 2)] if version >= 3 else [])
    assert response.finalized_features_epoch == (0 if version >= 3 else -1)


def test_produce_begins_at_0_and_no_range_is_empty() -> None:
    """A1b 3 and 4: librdkafka drops codecs when Produce starts at 3; aiokafka asserts ranges."""
    assert ADVERTISED[ApiKey.PRODUCE][0] == 0
    assert all(0 <= first <= last for first, last in ADVERTISED.values())
    with pytest.raises(ValueError, match="empty"):
        ApiVersionsHandler({ApiKey.FETCH: (5, 4)}, FakeFeatures(0), "ours", 1)


def test_s_txn_7_a_change_of_features_is_told_to_the_next_who_ask() -> None:
    features = FakeFeatures(0, transaction_version=2)
    handler = ApiVersionsHandler(ADVERTISED, features, "ours", 1)

    def told() -> tuple[int, list[tuple[str, int, int]]]:
        response = call(handler, KEY, 4, request())
        return response.finalized_features_epoch, [
            (one.name, one.min_version_level, one.max_version_level)
            for one in response.finalized_features
        ]

    assert told() == (0, [("transaction.version", 2, 2)])
    features.levels, features.epoch = {"transaction.version": 1}, 1
    assert told() == (1, [("transaction.version", 1, 1)])
    features.levels, features.epoch = {}, 2
    assert told() == (2, [])


def test_nothing_is_advertised_that_cannot_be_parsed() -> None:
    for key, (first, last) in ADVERTISED.items():
        spec = SPECS[key]
        assert spec.min_version <= first <= last <= spec.max_version, key.name


def test_what_the_clients_derive_features_from_is_there() -> None:
    """A1b 5, 6, 13, 15: librdkafka's features, Java 4's minimum ranges, no telemetry."""
    assert ADVERTISED[ApiKey.PRODUCE][1] >= 7
    assert ADVERTISED[ApiKey.FETCH][1] >= 11
    assert ADVERTISED[ApiKey.OFFSET_FOR_LEADER_EPOCH][1] >= 2
    for key in (ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT):
        assert key in ADVERTISED
    for key in (ApiKey.INIT_PRODUCER_ID, ApiKey.LEAVE_GROUP):
        assert key in ADVERTISED
    assert ApiKey.GET_TELEMETRY_SUBSCRIPTIONS not in ADVERTISED


@pytest.mark.parametrize("text", ["", "-x", "x-", "a b", "a\n", "é", ".", "a_b"])
@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_nonsense_software_name_or_version_is_an_invalid_request(version: int, text: str) -> None:
    for asked in (request(name=text), request(version=text)):
        response = call(HANDLER, KEY, version, asked)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert list(response.api_keys) == []


@pytest.mark.parametrize(
    ("cluster", "node", "code"),
    [
        (None, -1, ErrorCode.NONE),
        ("ours", 1, ErrorCode.NONE),
        ("theirs", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("ours", 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("theirs", 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("ours", -1, ErrorCode.INVALID_REQUEST),
        (None, 1, ErrorCode.INVALID_REQUEST),
        (None, 0, ErrorCode.INVALID_REQUEST),
        ("", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("ours", -2, ErrorCode.REBOOTSTRAP_REQUIRED),
    ],
)
def test_a_client_that_means_another_broker_is_told_to_begin_anew(
    cluster: str | None, node: int, code: ErrorCode
) -> None:
    """KIP-1242: somebody else got this address since the client's last Metadata."""
    asked = ApiVersionsRequest(
        client_software_name="a", client_software_version="1", cluster_id=cluster, node_id=node
    )
    response = call(HANDLER, KEY, 5, asked)
    assert response.error_code == code
    assert bool(response.api_keys) == (code is ErrorCode.NONE)


@pytest.mark.parametrize("text", ["a", "A-1.b", "apache-kafka-java", "4.4.0"])
def test_sane_software_names(text: str) -> None:
    assert call(HANDLER, KEY, 4, request(name=text)).error_code == ErrorCode.NONE


def test_an_unknown_version_is_answered_in_v0_with_the_range_of_this_api() -> None:
    """A1b 1 (KIP-511): an independent decoder reads it."""
    body = response_codec(KEY, 0).build(unsupported_version_response())
    decoded = entity_reader(kio_v0.ApiVersionsResponse)(memoryview(body), 0)
    value = decoded[0] if isinstance(decoded, tuple) else decoded
    assert int(value.error_code) == 35
    (api,) = value.api_keys
    assert (api.api_key, api.min_version, api.max_version) == (18, 0, 5)
