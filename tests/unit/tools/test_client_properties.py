"""Kafka's client properties become librdkafka's settings, and a context for `tools.wire`."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from tests.support.certificates import authority, client_identity, write_files
from tests.support.command_line import Command
from tools.client_properties import _OFTEN_SET, for_librdkafka, require_known
from tools.dialing import client_context_of, dialer
from tools.errors import CommandError


def test_settings_of_librdkafka_stay_as_they_are() -> None:
    settings = {"security.protocol": "SSL", "ssl.ca.location": "/x", "ssl.key.password": "p"}
    assert for_librdkafka(settings) == settings


def test_javas_stores_become_pem(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    own = client_identity()
    store = serialize_key_and_certificates(
        b"client", own.key, own.certificate, None, BestAvailableEncryption(b"s")
    )
    (tmp_path / "client.p12").write_bytes(store)
    java = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files["ca"],
        "ssl.keystore.location": str(tmp_path / "client.p12"),
        "ssl.keystore.password": "s",
        "ssl.key.password": "s",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.enabled.protocols": "TLSv1.3",
        "ssl.protocol": "TLSv1.3",
    }
    found = for_librdkafka(java)
    assert found == {
        "security.protocol": "SSL",
        "ssl.ca.pem": authority().identity.certificate_pem().decode(),
        "ssl.certificate.pem": own.certificate_pem().decode(),
        "ssl.key.pem": own.key_pem().decode(),
        "ssl.endpoint.identification.algorithm": "none",
    }
    context = client_context_of(found)
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_javas_names_of_suites_are_translated() -> None:
    names = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_AES_256_GCM_SHA384"
    found = for_librdkafka({"ssl.cipher.suites": names})
    assert found == {"ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"}
    assert for_librdkafka({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}) == {}
    with pytest.raises(CommandError, match="TLS_X is not served"):
        for_librdkafka({"ssl.cipher.suites": "TLS_X"})


def test_a_store_that_cannot_be_used_is_told() -> None:
    with pytest.raises(CommandError, match=r"ssl\.truststore\.location=/absent cannot be read"):
        for_librdkafka({"ssl.truststore.type": "PEM", "ssl.truststore.location": "/absent"})
    with pytest.raises(CommandError, match=r"cannot read ssl\.ca\.location=/absent: No such file"):
        dialer({"security.protocol": "ssl", "ssl.ca.location": "/absent"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"client.id": "me", "client.idd": "x"}, "client.idd is no setting of a client; did you"),
        ({"security.protcol": "SSL"}, "did you mean security.protocol?"),
        ({"frob": "1"}, "frob is no setting of a client$"),
        ({"frob": "1", "socket.timeout.ms": "x"}, "frob is no"),
        ({"socket.timeout.ms": "soon"}, "socket.timeout.ms"),
        ({"error_cb": "x"}, "error_cb"),
    ],
)
def test_settings_that_no_client_knows_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        require_known(settings)


@pytest.mark.parametrize(
    "words",
    [
        *("topics", "cluster", "transactions", "consume t", "produce t", "get-offsets t", "groups"),
        *("users", "acls", "quotas", "log-dirs", "perf produce t", "explain-cleaner t"),
        *("explain-retention t", "configs --topic t"),
    ],
)
def test_every_command_refuses_an_unknown_setting_before_it_connects(
    words: str, tmp_path: Path, command: Command
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=1\nclient.idd=x\n")
    for option in (["-X", "client.idd=x"], ["-F", str(file)]):
        told = command(*words.split(), "-b", "127.0.0.1:1", *option, code=1).err
        assert "client.idd is no setting of a client; did you mean" in told


def test_settings_of_either_client_are_taken() -> None:
    require_known({"client.id": "me", "socket.timeout.ms": "100", "log_level": 2})
    javas = ("default.api.timeout.ms", "key.serializer", "metrics.num.samples", "max.request.size")
    assert for_librdkafka(dict.fromkeys(javas, "1")) == {}


def test_names_that_are_guessed_are_settings() -> None:
    for name in _OFTEN_SET:
        if name.startswith(("ssl.keystore.", "ssl.truststore.", "sasl.jaas.")):
            continue  # Java's, and translated
        try:
            require_known({name: ""})
        except CommandError as error:
            assert "is no setting" not in str(error)  # the value is wrong, if anything


def test_checks_are_left_out_only_when_that_is_asked_for() -> None:
    context = client_context_of({})
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    context = client_context_of({"enable.ssl.certificate.verification": "false"})
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_NONE
