"""A broker as a client of another one, over each listener that brokers may speak on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from broker.peers.broker_peer import BrokerPeer
from broker.peers.peer import PeerError
from broker.peers.peers import Peers
from broker.peers.security import PeerSecurity
from broker.peers.surroundings import PeerSurroundings
from broker.world.driver import Driver
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.sasl.scram import ScramMechanism
from tests.support.certificates import listener_settings
from tests.support.memory_client import HOST
from tests.support.memory_transport import MemoryTransport
from tests.support.sasl_client import JAAS, SaslClient, upsertion
from tests.support.whole_broker import WholeBroker, whole_broker

PORT = 9093
BROKER = 'username="broker" password="broker-secret" user_broker="broker-secret"'


def settings(protocol: str, mechanism: str = "PLAIN", login: str = BROKER) -> dict[str, str]:
    """Return settings with a listener BETWEEN of this protocol; certificates name localhost."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return {
        "listeners": f"PLAINTEXT://{HOST}:9092,BETWEEN://localhost:{PORT}",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,BETWEEN:{protocol}",
        "inter.broker.listener.name": "BETWEEN",
        "advertised.listeners": f"PLAINTEXT://{HOST}:9092,BETWEEN://localhost:{PORT}",
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.enabled.mechanisms": mechanism,
        f"listener.name.between.{mechanism.lower()}.sasl.jaas.config": (
            f"{JAAS.format(module)} {login};"
        ),
        **(listener_settings("listener.name.between.") if protocol.endswith("SSL") else {}),
    }


@asynccontextmanager
async def peer_of(
    broker: WholeBroker, own: dict[str, str], host: str = "localhost"
) -> AsyncIterator[tuple[BrokerPeer, Driver]]:
    """Open another broker's connection to this one."""
    config = BrokerConfig.parse(own)
    driver = Driver(broker.workers, broker.clock)
    around = PeerSurroundings(
        transport=MemoryTransport(broker.network),
        workers=broker.workers,
        clock=broker.clock,
        deadlines=broker.server.components.deadlines,
        driver=driver,
        random=broker.server._world.random,
    )
    peers = Peers(config, around)
    protocol = config.listeners[1].protocol
    endpoint = Listener(name="BETWEEN", host=host, port=PORT, protocol=protocol)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peers.run)
        yield peers.to(1, endpoint, "another"), driver
        nursery.cancel_scope.cancel()


async def answered(peer: BrokerPeer, driver: Driver) -> bool:
    """Return whether Metadata names brokers. Raises PeerError."""
    work = peer.ask(ApiKey.METADATA, MetadataRequest(topics=[]), timeout_s=30)
    response = await driver.run(work)
    assert isinstance(response, MetadataResponse)
    return bool(response.brokers)


def principals(broker: WholeBroker) -> set[str]:
    connections = broker.server.components.socket_server._connections
    return {connection.info.principal for connection in connections}


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_brokers_speak_over_any_listener(protocol: str) -> None:
    own = settings(protocol)

    @whole_broker(**own)
    async def scenario(broker: WholeBroker) -> None:
        async with peer_of(broker, own) as (peer, driver):
            assert await answered(peer, driver)
            assert ("User:broker" in principals(broker)) == protocol.startswith("SASL_")

    scenario()


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_brokers_log_in_by_scram(mechanism: ScramMechanism) -> None:
    own = settings("SASL_PLAINTEXT", mechanism.value)

    @whole_broker(**own)
    async def scenario(broker: WholeBroker) -> None:
        admin = SaslClient(broker, port=9092)
        set_password = upsertion("broker", "broker-secret", mechanism)
        await admin.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, set_password)
        async with peer_of(broker, own) as (peer, driver):
            assert await answered(peer, driver)
            assert "User:broker" in principals(broker)

    scenario()


def test_a_wrong_password_is_named_in_the_error() -> None:
    own = settings("SASL_PLAINTEXT")
    wrong = settings("SASL_PLAINTEXT", login='username="broker" password="wrong"')

    @whole_broker(**own)
    async def scenario(broker: WholeBroker) -> None:
        async with peer_of(broker, wrong) as (peer, driver):
            with pytest.raises(PeerError, match="SASL: Authentication failed: Invalid username"):
                await answered(peer, driver)

    scenario()


@pytest.mark.parametrize("checks", [True, False])
def test_the_certificate_must_be_for_the_host_unless_that_is_off(checks: bool) -> None:
    own = settings("SSL")
    key = "ssl.endpoint.identification.algorithm"
    other = own if checks else {**own, f"listener.name.between.{key}": ""}
    own = {
        name: value.replace(f"BETWEEN://localhost:{PORT}", f"BETWEEN://elsewhere:{PORT}")
        for name, value in own.items()
    }

    @whole_broker(**own)
    async def scenario(broker: WholeBroker) -> None:
        async with peer_of(broker, other, host="elsewhere") as (peer, driver):
            if checks:
                with pytest.raises(PeerError, match="TLS: Hostname mismatch"):
                    await answered(peer, driver)
            else:
                assert await answered(peer, driver)

    scenario()


def test_a_session_is_renewed_before_it_ends() -> None:
    own = settings("SASL_PLAINTEXT") | {"connections.max.reauth.ms": "10000"}

    @whole_broker(**own)
    async def scenario(broker: WholeBroker) -> None:
        async with peer_of(broker, own) as (peer, driver):
            for _ in range(10):
                assert await answered(peer, driver)
                await broker.clock.sleep(3)

    scenario()


@pytest.mark.parametrize(
    ("mechanism", "login", "text"),
    [
        ("GSSAPI", BROKER, "sasl.mechanism.inter.broker.protocol is GSSAPI"),
        ("PLAIN", 'user_x="y"', "needs username and password"),
    ],
)
def test_an_impossible_login_stops_the_start(mechanism: str, login: str, text: str) -> None:
    own = settings("SASL_PLAINTEXT", login=login) | {
        "sasl.mechanism.inter.broker.protocol": mechanism
    }
    with pytest.raises(ConfigError, match=text):
        PeerSecurity(BrokerConfig.parse(own))
