"""TLS to ZooKeeper, with certificates on both sides."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from broker.cluster.metadata_store import Create, MetadataStoreError
from broker.zookeeper.encryption import EncryptionSettings, StoreFile
from broker.zookeeper.settings import ZooKeeperSettings
from config.broker_config import BrokerConfig
from tests.support.certificates import write_files
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeper
from tests.support.zookeeper_stores import open_zookeeper_store, run_on_loop

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Secured:
    connect: str
    files: dict[str, str]

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a broker that shows a certificate."""
        return {
            "zookeeper.connect": self.connect,
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.ssl.keystore.location": self.files["client"],
            "zookeeper.ssl.truststore.location": self.files["ca"],
        }

    @property
    def encryption(self) -> EncryptionSettings:
        encryption = ZooKeeperSettings.of(BrokerConfig.parse(self.settings)).encryption
        assert encryption is not None
        return encryption


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("zookeeper")
    files, port = write_files(directory), free_port()
    lines = [
        f"secureClientPort={port}",
        "secureClientPortAddress=127.0.0.1",
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        f"ssl.keyStore.location={files['broker']}",
        f"ssl.trustStore.location={files['ca']}",
    ]
    with ZooKeeper(directory / "server", settings=lines):
        yield Secured(f"127.0.0.1:{port}", files)


async def write_and_read(connect: str, encryption: EncryptionSettings | None) -> int:
    store = await open_zookeeper_store(connect, connection_timeout_s=3, encryption=encryption)
    try:
        await store.apply_each([Create(f"/t/{number}", bytes(10_000)) for number in range(100)])
        nodes = await store.get_many([f"/t/{number}" for number in range(100)])
        return sum(len(node.value) for node in nodes if node is not None)
    finally:
        await store.close()


@pytest.mark.parametrize("protocols", [("TLSv1.2",), ("TLSv1.2", "TLSv1.3")])
def test_both_sides_show_certificates(secured: Secured, protocols: tuple[str, ...]) -> None:
    encryption = replace(secured.encryption, protocols=protocols)
    connect = f"{secured.connect}/{len(protocols)}"
    assert run_on_loop(write_and_read(connect, encryption)) == 1_000_000


def test_a_server_that_is_not_believed_is_not_spoken_to(secured: Secured, tmp_path: Path) -> None:
    other = write_files(tmp_path, "another CA")
    encryption = replace(secured.encryption, trust=StoreFile(location=other["ca"]))
    with pytest.raises(MetadataStoreError, match="certificate verify failed"):
        run_on_loop(write_and_read(secured.connect, encryption))


def test_a_server_of_another_name_is_spoken_to_if_names_are_not_checked(secured: Secured) -> None:
    named = secured.connect.replace("127.0.0.1", "127.1") + "/named"  # the same address
    with pytest.raises(MetadataStoreError, match=r"certificate is not valid for '127\.1'"):
        run_on_loop(write_and_read(named, secured.encryption))
    encryption = replace(secured.encryption, check_names=False)
    assert run_on_loop(write_and_read(named, encryption)) == 1_000_000


def test_without_a_certificate_zookeeper_refuses(secured: Secured) -> None:
    encryption = replace(secured.encryption, keys=StoreFile())
    with pytest.raises(MetadataStoreError, match="no ZooKeeper server of"):
        run_on_loop(write_and_read(secured.connect, encryption))


def test_the_error_names_a_store_that_cannot_be_read(secured: Secured) -> None:
    encryption = replace(secured.encryption, trust=StoreFile(location="/nowhere.pem"))
    with pytest.raises(MetadataStoreError, match=r"zookeeper\.ssl.*: .*/nowhere\.pem"):
        run_on_loop(write_and_read(secured.connect, encryption))
