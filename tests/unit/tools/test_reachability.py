"""A broker that is not there is an error at once, with the reason."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.command_line import Command
from tests.support.ports import free_port
from tests.support.serving import serving
from tools.errors import CommandError
from tools.reachability import require_broker

API_VERSIONS = struct.pack(">iihi", 10, 1, 0, 0)


@contextmanager
def listening(answer: bytes | None) -> Iterator[str]:
    """Something at a port: it sends `answer` to whoever writes, or ends the connection."""

    def serve(server: socket.socket) -> None:
        while True:
            client, _ = server.accept()
            with client:
                client.settimeout(5)
                if answer is not None and client.recv(4096):
                    client.sendall(answer)

    with serving(serve) as (host, port):
        yield f"{host}:{port}"


def reason(servers: str, **settings: str) -> str:
    with pytest.raises(CommandError) as caught:
        require_broker({"bootstrap.servers": servers, **settings})
    return str(caught.value)


def test_nothing_listens() -> None:
    port = free_port()
    said = reason(f"127.0.0.1:{port}")
    assert said.startswith(f"cannot connect to 127.0.0.1:{port}: Connection refused. Is a broker")


@pytest.mark.parametrize("servers", ["host:port", "127.0.0.1:0", "127.0.0.1:70000", "", ":9092"])
def test_what_is_no_address(servers: str) -> None:
    assert "is not of the form HOST:PORT" in reason(servers)


def test_something_else_listens() -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        assert f"what listens at {address} does not answer as a Kafka broker" in reason(address)
    with listening(None) as address:
        assert "does not answer as a Kafka broker" in reason(address)


def test_one_of_several_is_enough() -> None:
    with listening(API_VERSIONS) as address:
        require_broker({"bootstrap.servers": f"127.0.0.1:{free_port()}, PLAINTEXT://{address}"})


def served(*answers: bytes, log_in: dict[str, str] | None = None) -> str | None:
    """Ask a broker that gives these answers in turn; return why it cannot be reached."""

    def serve(server: socket.socket) -> None:
        server.accept()[0].close()  # whether it can be connected to is tried first
        client, _ = server.accept()
        with client:
            for answer in answers:
                client.recv(4096)
                client.sendall(answer)
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass  # closing with unread bytes would be a reset, and no end

    with serving(serve) as (host, port):
        try:
            require_broker({"bootstrap.servers": f"{host}:{port}", **(log_in or {})})
        except CommandError as error:
            return str(error).replace(f"{host}:{port}", "HOST:PORT")
    return None


def handshake(code: int, *mechanisms: bytes, correlation: int = 2) -> bytes:
    names = b"".join(struct.pack(">h", len(name)) + name for name in mechanisms)
    return struct.pack(">iihi", 10 + len(names), correlation, code, len(mechanisms)) + names


def test_a_broker_that_wants_a_login_says_which() -> None:
    assert served(API_VERSIONS, handshake(33, b"PLAIN", b"OAUTHBEARER")) == (
        "HOST:PORT asks who you are: security.protocol=SASL_PLAINTEXT, sasl.mechanism (it offers"
        " PLAIN, OAUTHBEARER), sasl.username and sasl.password (-X, or --command-config)"
    )


@pytest.mark.parametrize(
    "answer",
    [handshake(34), handshake(33, correlation=1), b"", b"xx", handshake(33, b"\xff")],
)
def test_one_that_wants_none_or_knows_of_none_is_reached(answer: bytes) -> None:
    assert served(API_VERSIONS, answer) is None


def test_with_a_mechanism_that_only_librdkafka_may_have_the_connection_is_tried() -> None:
    with listening(None) as address:
        require_broker({"bootstrap.servers": address, "security.protocol": "SASL_SSL"})


def test_a_login_that_is_refused_is_reason_enough() -> None:
    log_in = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": "b",
    }
    ranges = struct.pack(">ihhhhhhhhh", 3, 18, 0, 0, 17, 0, 1, 36, 0, 0)
    versions = [
        struct.pack(">iih", 6 + len(ranges), n, code) + ranges for n, code in ((1, 35), (2, 0))
    ]
    refusal = served(*versions, handshake(33, b"X", correlation=3), log_in=log_in)
    assert refusal == "the broker at HOST:PORT: it offers X, and not PLAIN (sasl.mechanism)"
    silent = served(*versions, log_in=log_in)
    assert silent is not None
    assert "closed the connection" in silent
    assert silent.endswith("is --bootstrap-server right?")


def test_a_setting_that_is_missing_is_no_question_of_the_address() -> None:
    log_in = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    with listening(API_VERSIONS) as address:
        said = reason(address, **log_in, **{"sasl.username": "a"})
    assert said == "PLAIN needs sasl.password, or sasl.jaas.config with both credentials"


def test_a_login_without_tls_at_a_port_with_tls_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log_in = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": "b",
    }
    monkeypatch.setattr("tools.reachability.speaks_tls", lambda *_: True)
    with listening(None) as address:
        said = reason(address, **log_in)
    assert said.startswith(f"{address} speaks TLS: security.protocol=SASL_SSL (-X, or")


def test_a_command_ends_with_one_line_and_1(command: Command) -> None:
    port = free_port()
    told = command("topics", "-b", f"127.0.0.1:{port}", code=1).err
    assert told.startswith(f"pykafkalog topics: cannot connect to 127.0.0.1:{port}")
    assert told.count("\n") == 1


def test_a_host_without_an_address_is_told_as_such() -> None:
    said = reason("no.such.host.invalid:9092")
    assert said.startswith("no machine is known as no.such.host.invalid (")


def test_the_environment_stands_for_the_argument(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every command that speaks to a broker, and an argument goes before it."""
    address, other = (f"127.0.0.1:{free_port()}" for _ in range(2))
    monkeypatch.setenv("PYKAFKALOG_BOOTSTRAP", address)
    for words in (
        ["topics"],
        ["groups"],
        ["configs", "--topic", "t"],
        ["get-offsets", "t"],
        ["produce", "t"],
        ["consume", "t"],
        ["explain-cleaner", "t"],
        ["explain-retention", "t"],
    ):
        assert f"PYKAFKALOG_BOOTSTRAP={address} right?" in command(*words, code=1).err
        refused = command(*words, "-b", other, code=1).err
        assert f"cannot connect to {other}: Connection refused" in refused
