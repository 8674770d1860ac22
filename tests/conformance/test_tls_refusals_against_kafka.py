"""Apache Kafka and this broker refuse the same clients over TLS."""

import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import ca_pem, client_identity, expired
from tests.support.tls_brokers import encrypt, tls_port
from tls.authority import Identity

pytestmark = pytest.mark.conformance

ASKED = bytes.fromhex("0000000a0012000000000001ffff")


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """(Kafka's, ours)."""
    directory = tmp_path_factory.mktemp("tls")
    kafka, ours = ApacheKafka(directory / "kafka"), BrokerProcess(directory / "ours")
    for broker in (kafka, ours):
        # Kafka refuses a name that no rule matches; both have the same rules.
        encrypt(
            broker,
            directory / "files",
            ssl__client__auth="required",
            ssl__principal__mapping__rules="RULE:^CN=(alice|late),.*$/$1/",
        )
    with kafka, ours:
        yield tls_port(kafka), tls_port(ours)


def context(identity: Identity | None, directory: Path) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=ca_pem())
    if identity is not None:
        path = directory / "client.pem"
        path.write_bytes(identity.pem())
        made.load_cert_chain(path)
    return made


def is_served(port: int, made: ssl.SSLContext | None) -> bool:
    """Whether a client is answered; without a context it speaks no TLS."""
    try:
        with socket.create_connection(("127.0.0.1", port), 10) as plain:
            plain.settimeout(10)
            if made is None:
                plain.sendall(ASKED)
                # Kafka's alert, or nothing; an answer would have the correlation id.
                return plain.recv(100)[4:8] == b"\0\0\0\x01"
            with made.wrap_socket(plain, server_hostname="localhost") as encrypted:
                encrypted.sendall(ASKED)
                return bool(encrypted.recv(100))
    except OSError:
        return False


def old(made: ssl.SSLContext) -> ssl.SSLContext:
    made.set_ciphers("ALL:@SECLEVEL=0")
    made.minimum_version = ssl.TLSVersion.TLSv1
    made.maximum_version = ssl.TLSVersion.TLSv1_1
    return made


def of_1_2(made: ssl.SSLContext) -> ssl.SSLContext:
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    return made


def as_it_is(made: ssl.SSLContext) -> ssl.SSLContext:
    return made


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(
    ("identity", "change", "served"),
    [
        (client_identity(), as_it_is, True),
        (client_identity(), of_1_2, True),
        (client_identity(), old, False),
        (None, as_it_is, False),
        (None, of_1_2, False),
        (client_identity(name="foreign CA"), as_it_is, False),
        (expired().client("late"), as_it_is, False),
        (expired().client("late"), of_1_2, False),
        (client_identity("bob"), as_it_is, False),
    ],
    ids=["good", "1.2", "1.1", "none", "none 1.2", "foreign", "expired", "expired 1.2", "no rule"],
)
def test_both_let_in_the_same(
    ports: tuple[int, int],
    identity: Identity | None,
    change: Callable[[ssl.SSLContext], ssl.SSLContext],
    served: bool,
    tmp_path: Path,
) -> None:
    theirs, ours = (is_served(port, change(context(identity, tmp_path))) for port in ports)
    assert (theirs, ours) == (served, served)


def test_both_hang_up_on_a_client_without_tls(ports: tuple[int, int]) -> None:
    assert [is_served(port, None) for port in ports] == [False, False]
    again = [is_served(port, None) for port in ports]
    assert again == [False, False]
