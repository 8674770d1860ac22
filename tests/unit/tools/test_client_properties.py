"""Kafka's client properties become librdkafka's settings, and a context for `tools.wire`."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from tests.support.certificates import authority, client_identity, write_files
from tools.client_properties import for_librdkafka
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


def test_checks_are_left_out_only_when_that_is_asked_for() -> None:
    context = client_context_of({})
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    context = client_context_of({"enable.ssl.certificate.verification": "false"})
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_NONE
