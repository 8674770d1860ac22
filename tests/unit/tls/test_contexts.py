"""Contexts serve TLS 1.2 and 1.3 with what the settings say, and nothing weaker."""

import os
import ssl
import time
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.certificates import (
    authority,
    broker_identity,
    ca_pem,
    client_identity,
    expired,
    shaken,
)
from tls.authority import Authority, Identity
from tls.contexts import ServerContext, client_context, server_context
from tls.problems import TlsProblem
from tls.secret_file import secret_file
from tls.settings import ClientSettings, KeyStoreSettings, ServerSettings, TrustStoreSettings
from tls.suites import OF_TLS_1_2, chosen_suites


def no_file(path: str) -> bytes:
    raise AssertionError(path)


def inline(identity: Identity) -> KeyStoreSettings:
    return KeyStoreSettings(
        type="PEM", key=identity.key_pem().decode(), chain=identity.certificate_pem().decode()
    )


def trusting(name: str = "test CA") -> TrustStoreSettings:
    return TrustStoreSettings(type="PEM", certificates=ca_pem(name))


def server(**changes: object) -> ServerContext:
    values = {"keys": inline(broker_identity()), "trust": trusting(), **changes}
    settings = ServerSettings(**values)  # type: ignore[arg-type]
    return server_context(settings, no_file, round(time.time() * 1000))


def client(**changes: object) -> ssl.SSLContext:
    values = {"keys": KeyStoreSettings(), "trust": trusting(), **changes}
    return client_context(ClientSettings(**values), no_file)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_versions_are_those_that_are_enabled(version: str) -> None:
    end, _ = shaken(server(protocols=(version,)).context, client())
    assert end.version() == version
    other = ({"TLSv1.2", "TLSv1.3"} - {version}).pop()
    with pytest.raises(ssl.SSLError):
        shaken(server(protocols=(version,)).context, client(protocols=(other,)))


def test_nothing_older_than_tls_1_2_is_served_even_if_it_is_named() -> None:
    context = server(protocols=("TLSv1", "TLSv1.1", "TLSv1.2")).context
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    old = client()
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        shaken(context, old)
    for names in (("TLSv1.1",), ("TLSv1.4", "TLSv1.3"), ("",)):
        with pytest.raises(TlsProblem, match=r"served are TLSv1\.2 and TLSv1\.3"):
            server(protocols=names)


def test_renegotiation_is_off() -> None:
    assert server().context.options & ssl.OP_NO_RENEGOTIATION
    assert server().context.options & ssl.OP_NO_COMPRESSION


@pytest.mark.parametrize(
    ("auth", "shows", "served"),
    [
        ("none", None, True),
        ("none", "test CA", True),
        ("requested", None, True),
        ("requested", "test CA", True),
        ("requested", "foreign CA", False),
        ("required", None, False),
        ("required", "test CA", True),
        ("required", "foreign CA", False),
        ("required", "expired", False),
    ],
)
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_clients_are_asked_for_a_certificate_as_the_setting_says(
    auth: str, shows: str | None, served: bool, version: str
) -> None:
    identity = {
        None: None,
        "test CA": client_identity(),
        "foreign CA": client_identity(name="foreign CA"),
        "expired": expired().client("late"),
    }[shows]
    context = server(client_auth=auth)
    assert context.asks_clients == (auth != "none")
    theirs = client(
        keys=KeyStoreSettings() if identity is None else inline(identity), protocols=(version,)
    )
    if not served:
        with pytest.raises(ssl.SSLError):
            shaken(context.context, theirs)
        return
    end, _ = shaken(context.context, theirs)
    expected = identity if auth != "none" else None
    assert (end.getpeercert(True) is not None) == (expected is not None)


def test_a_certificate_in_the_trust_store_is_believed_though_it_is_no_authoritys() -> None:
    alone = client_identity("alone", "unknown CA")
    trust = TrustStoreSettings(type="PEM", certificates=alone.certificate_pem().decode())
    context = server(client_auth="required", trust=trust).context
    end, _ = shaken(context, client(keys=inline(alone)))
    assert end.getpeercert(True)
    with pytest.raises(ssl.SSLError):
        shaken(context, client(keys=inline(client_identity())))


def test_a_client_checks_the_brokers_name_and_authority() -> None:
    context = server().context
    shaken(context, client(), "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(context, client(), "elsewhere")
    shaken(context, client(check_names=False), "elsewhere")
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(context, client(trust=trusting("foreign CA")))
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(context, client(trust=TrustStoreSettings()))  # the machine's


def of(identity: Identity) -> Callable[[], object]:
    return lambda: server(keys=inline(identity))


def small_key() -> Identity:
    own = authority().server(["x"])
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key = rsa.generate_private_key(65537, 1024)
    theirs = own.certificate
    certificate = (
        x509.CertificateBuilder()
        .subject_name(theirs.subject)
        .issuer_name(theirs.issuer)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(theirs.not_valid_before_utc)
        .not_valid_after(theirs.not_valid_after_utc)
        .sign(authority().identity.key, hashes.SHA256())
    )
    return Identity(certificate, key)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (of(expired().server(["late"])), "expired on 2"),
        (
            of(Authority(authority().identity, time.time() + 86_400, 9).server(["early"])),
            "is valid from 2",
        ),
        (of(small_key()), "cannot be used: ee key too small"),
        (
            lambda: server(client_auth="required", trust=TrustStoreSettings()),
            "ssl.client.auth=required needs the certificates",
        ),
        (lambda: server(suites=("TLS_NO_SUCH",)), "TLS_NO_SUCH is not served here"),
        (
            lambda: server(suites=("TLS_AES_256_GCM_SHA384",), protocols=("TLSv1.2",)),
            "has no suite for any of",
        ),
        (lambda: server(suites=("TLS_AES_128_GCM_SHA256",)), "name it too, or leave TLSv1.3 out"),
    ],
    ids=["expired", "not yet", "small", "trust", "suite", "no suite", "order"],
)
def test_what_no_client_could_use_is_refused_with_a_line(
    make: Callable[[], object], text: str
) -> None:
    with pytest.raises(TlsProblem) as caught:
        make()
    assert text in str(caught.value)


@pytest.mark.parametrize("name", OF_TLS_1_2)
def test_every_suite_that_java_names_is_openssls_of_that_number(name: str) -> None:
    suites = chosen_suites((name,), ("TLSv1.2", "TLSv1.3"))
    assert suites.protocols == ("TLSv1.2",)
    context = server(suites=(name,)).context
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2
    served = [one for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"]
    assert [one["name"] for one in served] == [OF_TLS_1_2[name]]
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    shown = served[0]["description"]
    wanted = {"ECDHE_ECDSA": "ECDH ECDSA", "ECDHE_RSA": "ECDH RSA", "RSA": "RSA RSA"}[exchange]
    assert shown.replace("Kx=", "").replace("Au=", "").split()[2:4] == wanted.split()
    assert ("GCM" in cipher) == ("AESGCM" in shown)
    assert ("CHACHA20" in cipher) == ("CHACHA20" in shown)
    assert ("AES_128" in cipher) == ("(128)" in shown)


def test_a_suite_is_taken_that_the_list_names() -> None:
    name = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    end, _ = shaken(server(suites=(name,)).context, client())
    assert end.cipher()[0] == OF_TLS_1_2[name]  # type: ignore[index]
    both = server(suites=(name, "TLS_AES_256_GCM_SHA384"))
    end, _ = shaken(both.context, client())
    assert end.cipher()[0] == "TLS_AES_256_GCM_SHA384"  # type: ignore[index]
    assert both.suites.admits("TLSv1.3", "TLS_AES_256_GCM_SHA384")
    assert not both.suites.admits("TLSv1.3", "TLS_AES_128_GCM_SHA256")
    assert both.suites.admits("TLSv1.2", "whatever OpenSSL took from the list")


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_private_key_is_readable_by_its_owner_only_and_gone_afterwards(
    in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    with secret_file(b"hush" * 10_000) as path:
        with open(path, "rb") as file:
            assert file.read() == b"hush" * 10_000
        if not in_memory:
            assert os.stat(path).st_mode & 0o077 == 0
    assert not os.path.exists(path)
