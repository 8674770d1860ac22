"""A whole broker with a listener that authenticates, and clients on raw frames."""

import base64
import contextlib
import logging
import struct
from typing import Any

import pytest
import trio

from broker.quotas.client_quota import QuotaType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.sasl.plain import build_plain
from protocol.sasl.scram import ScramMechanism
from tests.support.sasl import scram_messages
from tests.support.sasl_client import JAAS, PORT, SETTINGS, USERS, SaslClient, upsertion
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.plain import set_quota

RIGHT = build_plain("alice", "alice-secret")
WRONG = build_plain("alice", "wrong")
NAMED = ApiVersionsRequest(client_software_name="a", client_software_version="1")
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
INVALID = "Authentication failed: Invalid username or password"


def principals(broker: WholeBroker) -> set[str]:
    """Return the principals of the open connections."""
    connections = broker.server.components.socket_server._connections
    return {connection.info.principal for connection in connections}


def proof(client: SaslClient, message: bytes) -> bytes:
    """Return a SaslAuthenticate as it is sent."""
    request = SaslAuthenticateRequest(auth_bytes=message)
    return client.frame(ApiKey.SASL_AUTHENTICATE, 1, request)


async def closed_after(broker: WholeBroker, client: SaslClient, data: bytes) -> float:
    """Send bytes; return the seconds until the broker closes the connection without an answer."""
    began = broker.clock.monotonic()
    await client.send(data)
    assert await client.is_closed()
    return broker.clock.monotonic() - began


# ---- the way in


@whole_broker(**SETTINGS)
async def test_a_client_is_served_when_it_has_authenticated(broker: WholeBroker) -> None:
    client = SaslClient(broker)
    versions = await client.call(ApiKey.API_VERSIONS, 3, NAMED)
    assert {17, 36} <= {api.api_key for api in versions.api_keys}
    shaken = await client.shake()
    assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.NONE, MECHANISMS)
    answer = await client.say(RIGHT)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, "")
    assert (bytes(answer.auth_bytes), answer.session_lifetime_ms) == (b"", 0)
    assert await client.is_served()
    assert "User:alice" in principals(broker)


@pytest.mark.parametrize("mechanism", ScramMechanism)
@whole_broker(**SETTINGS)
async def test_scram_with_credentials_that_were_set_over_the_wire(
    broker: WholeBroker, mechanism: ScramMechanism
) -> None:
    request = upsertion("carol", "pencil", mechanism)
    await broker.client().call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    for _ in range(2):
        client = SaslClient(broker)
        assert (await client.scram("carol", "pencil", mechanism)).error_code == 0
        assert await client.is_served()
        refused = await SaslClient(broker).scram("carol", "pen", mechanism)
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        unknown = await SaslClient(broker).scram("nobody", "pen", mechanism)
        assert unknown == refused
        await broker.restart()


@whole_broker(**SETTINGS)
async def test_messages_without_header_after_the_older_handshake(broker: WholeBroker) -> None:
    client = SaslClient(broker)
    assert (await client.shake("PLAIN", version=0)).error_code == ErrorCode.NONE
    await client.send_raw(RIGHT)
    assert await client.receive() == b""
    assert await client.is_served()
    client = SaslClient(broker)
    await client.shake("PLAIN", version=0)
    await client.send_raw(WRONG)
    assert await client.is_closed()


@whole_broker(**SETTINGS)
async def test_a_scram_exchange_without_headers(broker: WholeBroker) -> None:
    mechanism = ScramMechanism.SHA_512
    await broker.client().call(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, upsertion("carol", "pencil", mechanism)
    )
    client = SaslClient(broker)
    await client.shake(mechanism.value, version=0)
    talk = scram_messages(mechanism, "carol", "pencil")
    await client.send_raw(next(talk))
    await client.send_raw(talk.send(await client.receive()))  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        talk.send(await client.receive())  # type: ignore[attr-defined]
    assert await client.is_served()


@whole_broker(**SETTINGS)
async def test_a_client_may_send_everything_at_once_or_byte_by_byte(broker: WholeBroker) -> None:
    def everything(client: SaslClient) -> bytes:
        return b"".join(
            (
                client.frame(ApiKey.API_VERSIONS, 3, NAMED),
                client.frame(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN")),
                proof(client, RIGHT),
                client.frame(ApiKey.METADATA, 12, MetadataRequest(topics=[])),
            )
        )

    for pieces in (1, 1000):
        client = SaslClient(broker)
        data = everything(client)
        size = -(-len(data) // pieces)
        for start in range(0, len(data), size):
            await client.send(data[start : start + size])
            await broker.clock.sleep(0.001)
        for _ in range(3):
            await client.receive()
        assert (await client.response(ApiKey.METADATA, 12)).brokers


@whole_broker(**{**SETTINGS, "socket.request.max.bytes": "1000000"})
async def test_a_large_request_may_follow_the_proof_at_once(broker: WholeBroker) -> None:
    """The smaller limit holds only for requests before the authentication."""
    client = SaslClient(broker)
    await client.shake()
    sent = proof(client, RIGHT)
    large = client.frame(ApiKey.HEARTBEAT, 0)
    large = struct.pack(">i", 600_000) + large[4:] + bytes(600_000 - len(large) + 4)
    await client.send(sent + large)
    await client.receive()
    assert await client.receive()


# ---- refusals


@pytest.mark.parametrize(
    ("before", "key"),
    [
        ([], ApiKey.METADATA),
        ([], ApiKey.PRODUCE),
        ([], ApiKey.SASL_AUTHENTICATE),
        ([ApiKey.API_VERSIONS], ApiKey.METADATA),
        ([ApiKey.API_VERSIONS], ApiKey.API_VERSIONS),
    ],
)
@whole_broker(**SETTINGS)
async def test_s_sec_1_anything_else_before_the_handshake_closes_the_connection_at_once(
    broker: WholeBroker, before: list[ApiKey], key: ApiKey
) -> None:
    client = SaslClient(broker)
    for asked in before:
        await client.call(asked, 0)
    assert await closed_after(broker, client, client.frame(key, 0)) < 0.05


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.CREATE_TOPICS])
@whole_broker(**SETTINGS)
async def test_s_sec_1_anything_else_during_the_exchange_is_not_answered(
    broker: WholeBroker, key: ApiKey
) -> None:
    client = SaslClient(broker)
    await client.shake()
    assert await closed_after(broker, client, client.frame(key, 0)) >= 0.1


@whole_broker(**SETTINGS)
async def test_a_second_handshake_during_the_exchange_is_illegal(broker: WholeBroker) -> None:
    for key, version in ((ApiKey.SASL_HANDSHAKE, 1), (ApiKey.API_VERSIONS, 0)):
        client = SaslClient(broker)
        await client.shake()
        answer = await client.call(key, version)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await client.is_closed()


@whole_broker(**SETTINGS)
async def test_the_answer_to_an_unknown_mechanism_lists_the_known_ones(broker: WholeBroker) -> None:
    for name in ("GSSAPI", "plain", "", "SCRAM-SHA-1"):
        client = SaslClient(broker)
        answer = await client.shake(name)
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == MECHANISMS
        assert await client.is_closed()


@whole_broker(**SETTINGS)
async def test_a_wrong_password_is_answered_late_and_ends_the_connection(
    broker: WholeBroker,
) -> None:
    for user in ("alice", "nobody"):
        client = SaslClient(broker)
        await client.shake()
        began = broker.clock.monotonic()
        answer = await client.say(build_plain(user, "wrong"))
        assert broker.clock.monotonic() - began >= 0.1
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == INVALID
        assert await client.is_closed()


@whole_broker(**{**SETTINGS, "connection.failed.authentication.delay.ms": "0"})
async def test_a_wrong_password_is_answered_at_once_if_there_is_no_delay(
    broker: WholeBroker,
) -> None:
    client = SaslClient(broker)
    await client.shake()
    began = broker.clock.monotonic()
    await client.say(WRONG)
    assert await client.is_closed()
    assert broker.clock.monotonic() - began < 0.05


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", 524_289) + bytes(100),
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 1) + b"x",
        struct.pack(">i", 16) + b"\x60garbagegarbage!",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        struct.pack(">ihhih", 12, 17, 9, 1, -1) + b"\0\0",
        struct.pack(">ihhih", 12, 17, 1, 1, -1) + b"\0\x50",
        struct.pack(">ihhih", 12, 18, 3, 1, -1) + b"\0\x50",
    ],
)
@whole_broker(**SETTINGS)
async def test_bytes_that_are_no_request_close_the_connection(
    broker: WholeBroker, data: bytes
) -> None:
    # And not when the time to authenticate is over.
    assert await closed_after(broker, SaslClient(broker), data) < 0.5
    good = SaslClient(broker)
    assert (await good.log_in()).error_code == 0
    assert await good.is_served()


@whole_broker(**SETTINGS)
async def test_a_message_has_the_size_that_is_set(
    broker: WholeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client, larger = SaslClient(broker), SaslClient(broker)
    await client.shake()
    await client.send(proof(client, bytes(524_250)))
    assert (await client.response(36, 1)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    await larger.shake()
    with contextlib.suppress(ConnectionError):  # it is closed before all is sent
        await larger.send(proof(larger, bytes(524_280)))
    assert await larger.is_closed()
    assert "(Failing SASL authentication due to invalid receive size)" in caplog.text


@whole_broker(**SETTINGS)
async def test_the_answer_to_an_unknown_version_of_api_versions_lists_the_known_ones(
    broker: WholeBroker,
) -> None:
    client = SaslClient(broker)
    for _ in range(2):
        await client.send_raw(struct.pack(">hhih", 18, 99, 1, -1))
        assert (await client.receive())[4:6] == struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
    assert (await client.log_in()).error_code == ErrorCode.NONE


@whole_broker(**SETTINGS)
async def test_both_requests_are_illegal_on_a_listener_without_sasl(broker: WholeBroker) -> None:
    client = SaslClient(broker, port=9092)
    for version in (0, 1):
        shaken = await client.shake(version=version)
        assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    answer = await client.say(RIGHT)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == (
        "SaslAuthenticate request received after successful authentication"
    )
    assert await client.is_served()


@whole_broker(**SETTINGS)
async def test_failures_are_logged_in_kafkas_words(
    broker: WholeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = SaslClient(broker, host="10.0.0.7")
    await client.shake()
    await client.say(WRONG)
    line = next(r.getMessage() for r in caplog.records if "Failed authentication" in r.getMessage())
    assert line.startswith("Failed authentication with /10.0.0.7 (channelId=broker:9093-10.0.0.7:")
    assert line.endswith(f") ({INVALID})")


# ---- sessions (KIP-368)

SESSIONS = {**SETTINGS, "connections.max.reauth.ms": "5000"}


@whole_broker(**SESSIONS)
async def test_s_sec_2_a_session_is_renewed_in_time_or_the_connection_closed(
    broker: WholeBroker,
) -> None:
    client = SaslClient(broker)
    assert (await client.log_in()).session_lifetime_ms == 5000
    for _ in range(3):
        await broker.clock.sleep(4)
        assert await client.is_served()
        assert (await client.log_in()).session_lifetime_ms == 5000
    await broker.clock.sleep(5.1)
    assert not await client.is_served()
    statistics = broker.server.components.authentication.statistics()["SASL"]  # type: ignore[union-attr]
    assert (statistics.successful, statistics.successful_again) == (1, 3)
    assert statistics.expired == 1


@whole_broker(**SESSIONS)
async def test_s_sec_2_a_session_may_be_renewed_without_headers(broker: WholeBroker) -> None:
    client = SaslClient(broker)
    await client.log_in()
    assert (await client.shake(version=0)).error_code == ErrorCode.NONE
    await client.send_raw(RIGHT)
    assert await client.receive() == b""
    assert await client.is_served()


@whole_broker(**SESSIONS)
async def test_s_sec_2_neither_principal_nor_mechanism_may_change(broker: WholeBroker) -> None:
    client = SaslClient(broker)
    await client.log_in()
    answer = await client.log_in("bob", "bob-secret")
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert await client.is_closed()
    client = SaslClient(broker)
    await client.log_in()
    assert (await client.shake("SCRAM-SHA-256")).error_code == ErrorCode.NONE
    await client.send(proof(client, b"n,,"))
    assert await client.is_closed()


# ---- delegation tokens (KIP-48)


async def created_token(owner: SaslClient, max_lifetime_ms: int = -1) -> tuple[Any, str]:
    """Create a token; return the answer, and the password that it stands for."""
    request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=max_lifetime_ms)
    token = await owner.call(ApiKey.CREATE_DELEGATION_TOKEN, 3, request)
    return token, base64.b64encode(bytes(token.hmac)).decode()


@whole_broker(**SETTINGS)
async def test_a_token_authenticates_as_its_owner_and_makes_no_other(broker: WholeBroker) -> None:
    owner = SaslClient(broker)
    await owner.log_in()
    token, password = await created_token(owner)
    assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "alice")
    for mechanism in ScramMechanism:
        client = SaslClient(broker)
        answer = await client.scram(token.token_id, password, mechanism, by_token=True)
        assert answer.error_code == ErrorCode.NONE
        assert answer.session_lifetime_ms > 86_000_000
        assert await client.is_served()
        again, _ = await created_token(client)
        assert again.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    refused = await SaslClient(broker).scram(token.token_id, password)
    assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@whole_broker(**{**SETTINGS, "connections.max.idle.ms": "-1"})
async def test_a_token_that_expires_takes_its_sessions_along(broker: WholeBroker) -> None:
    owner = SaslClient(broker)
    await owner.log_in()
    token, password = await created_token(owner, max_lifetime_ms=5000)
    client = SaslClient(broker)
    answer = await client.scram(token.token_id, password, by_token=True)
    assert 4900 < answer.session_lifetime_ms <= 5000
    await broker.clock.sleep(4)
    assert await client.is_served()
    await broker.clock.sleep(2)
    assert not await client.is_served()
    refused = await SaslClient(broker).scram(token.token_id, password, by_token=True)
    assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    everything = DescribeDelegationTokenRequest(owners=None)
    described = await owner.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, everything)
    assert [one.token_id for one in described.tokens] == [token.token_id]
    await broker.clock.sleep(3600)  # `delete-expired-tokens` comes by
    described = await owner.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, everything)
    assert described.tokens == []


@whole_broker(**SETTINGS)
async def test_a_listener_without_sasl_makes_no_tokens(broker: WholeBroker) -> None:
    token, _ = await created_token(SaslClient(broker, port=9092))
    assert token.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (token.principal_type, token.principal_name) == ("User", "ANONYMOUS")


# ---- crowds


@whole_broker(**{**SETTINGS, "sasl.authentication.timeout.ms": "2000"})
async def test_a_client_that_does_not_authenticate_is_closed_in_time(broker: WholeBroker) -> None:
    silent, half = SaslClient(broker), SaslClient(broker)
    good = SaslClient(broker)
    await half.shake()
    await good.log_in()
    began = broker.clock.monotonic()
    assert await silent.is_closed()
    assert await half.is_closed()
    assert 1.9 < broker.clock.monotonic() - began < 2.3
    await broker.clock.sleep(60)
    assert await good.is_served()
    statistics = broker.server.components.authentication.statistics()["SASL"]  # type: ignore[union-attr]
    assert statistics.late == 2


CROWD = {
    **SETTINGS,
    "max.unauthenticated.connections": "30",
    "max.unauthenticated.connections.per.ip": "10",
}


@whole_broker(**CROWD)
async def test_clients_that_hold_connections_lose_them_to_newcomers(broker: WholeBroker) -> None:
    crowd = [SaslClient(broker, host=f"10.0.1.{n % 4}") for n in range(200)]
    await broker.clock.sleep(0.1)
    server = broker.server.components.socket_server
    assert server.statistics().strangers == 30
    for host in ("10.0.1.1", "10.0.9.9"):
        good = SaslClient(broker, host=host)
        assert (await good.log_in()).error_code == ErrorCode.NONE
        assert await good.is_served()
    assert server.statistics().strangers <= 30
    for client in crowd:
        client.close()
    await broker.clock.sleep(0.1)
    assert server.statistics().strangers == 0


@whole_broker(**CROWD)
async def test_a_good_client_is_served_throughout_a_flood(broker: WholeBroker) -> None:
    async def flood(host: str) -> None:
        while True:
            client = SaslClient(broker, host=host)
            with contextlib.suppress(OSError):
                await client.log_in("alice", "wrong")
            client.close()
            await broker.clock.sleep(0.02)

    async with trio.open_nursery() as nursery:
        for n in range(40):
            nursery.start_soon(flood, f"10.0.1.{n % 5}")
        await broker.clock.sleep(1)
        for _ in range(10):
            good = SaslClient(broker, host="10.0.9.9")
            assert (await good.log_in()).error_code == ErrorCode.NONE
            assert await good.is_served()
            good.close()
            await broker.clock.sleep(0.1)
        nursery.cancel_scope.cancel()
    # One task per refusal would be dozens.
    assert broker.server.components.socket_server._loop.elsewhere == 0


@whole_broker(**SETTINGS)
@pytest.mark.parametrize("resets", [True, False])
async def test_a_client_that_leaves_before_its_refusal_leaves_nothing_behind(
    broker: WholeBroker, resets: bool
) -> None:
    timers = broker.server.components.deadlines.statistics().active
    for _ in range(20):
        client = SaslClient(broker)
        await client.shake()
        await client.send(proof(client, WRONG))
        await broker.clock.sleep(0.01)
        if resets:
            client.stream.abort()  # type: ignore[attr-defined]
        else:
            client.close()
    await broker.clock.sleep(0.01)
    server = broker.server.components.socket_server
    assert (server.statistics().strangers == 0) is resets
    await broker.clock.sleep(0.1)  # connection.failed.authentication.delay.ms
    statistics = broker.server.components.socket_server.statistics()
    assert (statistics.strangers, statistics.connections["SASL"]) == (0, 0)
    assert broker.server.components.deadlines.statistics().active == timers
    assert statistics.buffers.bytes_in_use == 0


@whole_broker(**SETTINGS)
async def test_a_broker_stops_while_refusals_wait(broker: WholeBroker) -> None:
    client = SaslClient(broker)
    await client.shake()
    await client.send(proof(client, WRONG))
    assert await broker.stop()


# ---- quotas


@whole_broker(**SETTINGS)
async def test_s_qta_2_quotas_charge_the_user_that_has_logged_in(broker: WholeBroker) -> None:
    await set_quota(broker, user=None, request_percentage=50)
    charging = broker.server.components.quotas.charging
    assert charging is not None

    def payers() -> set[str]:
        return {one.payer.user for one in charging.statistics()[QuotaType.REQUEST].payers}

    before = payers()
    client, refused = SaslClient(broker), SaslClient(broker)
    for one in (client, refused):
        await one.call(ApiKey.API_VERSIONS, 3, NAMED)
    await refused.shake()
    assert (await refused.say(WRONG)).error_message == INVALID
    raw = SaslClient(broker)
    await raw.shake(version=0)
    await raw.send_raw(WRONG)
    assert await raw.is_closed()
    await client.log_in()
    assert payers() == before
    assert await client.is_served()
    assert payers() == before | {"alice"}


@whole_broker(**SETTINGS)
async def test_credentials_and_quotas_of_a_user_leave_each_other_alone(
    broker: WholeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    await set_quota(broker, user="carol", client_id="c", producer_byte_rate=1e6)
    await set_quota(broker, user=None, producer_byte_rate=2e6)
    described = await broker.client().call(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequest()
    )
    assert described.results == []
    await broker.client().call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, upsertion("carol", "pencil"))
    assert (await SaslClient(broker).scram("carol", "pencil")).error_code == ErrorCode.NONE
    await set_quota(broker, user="carol", producer_byte_rate=3e6)
    await broker.restart()
    assert (await SaslClient(broker).scram("carol", "pencil")).error_code == ErrorCode.NONE
    assert {
        str(one): values for one, values in broker.server.components.client_quotas.entities.items()
    } == {
        "user carol, client-id c": {"producer_byte_rate": 1e6},
        "user carol": {"producer_byte_rate": 3e6},
        "default user": {"producer_byte_rate": 2e6},
    }
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


# ---- the configuration


@whole_broker(
    **{
        **SETTINGS,
        "listeners": "PLAINTEXT://broker:9092,SASL://broker:9093,IN://broker:9094",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,IN:SASL_PLAINTEXT"
        ),
        "listener.name.in.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.in.plain.sasl.jaas.config": (
            f'{JAAS.format("plain.Plain")} user_zoe="zoe-secret";'
        ),
        "listener.name.in.plain.connections.max.reauth.ms": "7000",
    }
)
async def test_every_listener_has_its_own_users_and_mechanisms(broker: WholeBroker) -> None:
    assert USERS in SETTINGS["listener.name.sasl.plain.sasl.jaas.config"]
    zoe = SaslClient(broker, port=9094)
    assert (await zoe.log_in("zoe", "zoe-secret")).session_lifetime_ms == 7000
    assert (await SaslClient(broker, port=9094).shake("SCRAM-SHA-256")).mechanisms == ["PLAIN"]
    for port, user, password in ((9094, "alice", "alice-secret"), (PORT, "zoe", "zoe-secret")):
        refused = await SaslClient(broker, port=port).log_in(user, password)
        assert refused.error_message == INVALID
