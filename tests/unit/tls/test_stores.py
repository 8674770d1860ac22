"""Stores of every type are read, and a line names the fault of a bad one."""

from collections.abc import Callable

import jks
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from tests.support.certificates import authority, broker_identity, client_identity
from tls.authority import Identity
from tls.problems import TlsProblem
from tls.settings import KeyStoreSettings, TrustStoreSettings
from tls.stores import load_key_store, load_trust_store

OWN = broker_identity()
CA = authority().identity
KEY, CERTIFICATE = OWN.key_pem().decode(), OWN.certificate_pem().decode()


def key_der(identity: Identity = OWN) -> bytes:
    return identity.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def der(identity: Identity) -> bytes:
    return identity.certificate.public_bytes(Encoding.DER)


def encrypted_key(password: str) -> str:
    protection = BestAvailableEncryption(password.encode())
    return OWN.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection).decode()


def pkcs12(password: str, *, with_key: bool = True) -> bytes:
    return serialize_key_and_certificates(
        b"broker",
        OWN.key if with_key else None,
        OWN.certificate if with_key else None,
        [CA.certificate],
        BestAvailableEncryption(password.encode()),
    )


def jks_store(password: str, key_password: str | None = None, *, with_key: bool = True) -> bytes:
    entries = [
        jks.PrivateKeyEntry.new("broker", [der(OWN), der(CA)], key_der(), "pkcs8")
        if with_key
        else jks.TrustedCertEntry.new("ca", der(CA))
    ]
    if key_password is not None:
        entries[0].encrypt(key_password)
    content: bytes = jks.KeyStore.new("jks", entries).saves(password)
    return content


def inline(key: str = KEY, *, chain: str = CERTIFICATE, **more: str | None) -> KeyStoreSettings:
    return KeyStoreSettings(type="PEM", key=key, chain=chain, **more)


def keys(content: bytes, kind: str, **more: str) -> KeyStoreSettings:
    reading[f"/{kind}"] = content
    return KeyStoreSettings(type=kind, location=f"/{kind}", **more)


def trust(content: bytes, kind: str, **more: str) -> TrustStoreSettings:
    reading[f"/{kind}"] = content
    return TrustStoreSettings(type=kind, location=f"/{kind}", **more)


reading: dict[str, bytes] = {}


def read(path: str) -> bytes:
    try:
        return reading[path]
    except KeyError:
        raise FileNotFoundError(2, "No such file or directory") from None


PEM_FILE = (KEY + CERTIFICATE + CA.certificate_pem().decode()).encode()


@pytest.mark.parametrize(
    "settings",
    [
        keys(PEM_FILE, "PEM"),
        keys(CERTIFICATE.encode() + b"between\n" + KEY.encode(), "pem"),
        inline(),
        inline(KEY.replace("\n", " "), chain=CERTIFICATE.replace("\n", "")),
        inline(encrypted_key("s"), key_password="s"),
    ],
    ids=["file", "certificate first", "inline", "in one line", "encrypted"],
)
def test_pem_is_read_from_a_file_and_from_settings(settings: KeyStoreSettings) -> None:
    reading["/PEM"] = PEM_FILE
    reading["/pem"] = CERTIFICATE.encode() + b"between\n" + KEY.encode()
    found = load_key_store(settings, read)
    assert found.leaf == OWN.certificate
    assert found.key.public_key() == OWN.key.public_key()


def test_keys_in_openssls_older_forms_are_read() -> None:
    for kind in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())):
        for protection, password in (
            (NoEncryption(), None),
            (BestAvailableEncryption(b"s"), "s"),
        ):
            text = kind.private_bytes(
                Encoding.PEM, PrivateFormat.TraditionalOpenSSL, protection
            ).decode()
            with pytest.raises(TlsProblem, match="is for another private key"):
                load_key_store(inline(text, key_password=password), read)


def test_the_chain_is_sent_in_order_without_what_does_not_belong_to_it() -> None:
    other = client_identity().certificate_pem().decode()
    text = CA.certificate_pem().decode() + other + CERTIFICATE
    found = load_key_store(inline(chain=text), read)
    assert found.chain == (OWN.certificate, CA.certificate)


@pytest.mark.parametrize("named", ["JKS", "PKCS12", "jks"])
@pytest.mark.parametrize("is_jks", [True, False])
def test_a_store_is_read_by_what_it_is(named: str, is_jks: bool) -> None:
    content = jks_store("s") if is_jks else pkcs12("s")
    found = load_key_store(keys(content, named, password="s"), read)
    assert found.chain == (OWN.certificate, CA.certificate)
    assert found.key.public_key() == OWN.key.public_key()
    trusted = jks_store("s", with_key=False) if is_jks else pkcs12("s", with_key=False)
    assert load_trust_store(trust(trusted, named, password="s"), read) == (CA.certificate,)


def test_a_key_of_jks_may_have_a_password_of_its_own() -> None:
    content = jks_store("store", "key")
    settings = keys(content, "JKS", password="store", key_password="key")
    assert load_key_store(settings, read).leaf == OWN.certificate


def test_trusted_certificates_are_read_from_pem_and_none_is_none() -> None:
    both = CA.certificate_pem().decode() + CERTIFICATE
    wanted = (CA.certificate, OWN.certificate)
    assert load_trust_store(trust(both.encode(), "PEM"), read) == wanted
    inline = TrustStoreSettings(type="PEM", certificates=both.replace("\n", " "))
    assert load_trust_store(inline, read) == wanted
    assert load_trust_store(TrustStoreSettings(), read) == ()


Made = Callable[[], KeyStoreSettings | TrustStoreSettings]
PROBLEMS: dict[str, tuple[Made, str]] = {
    "no keys": (lambda: KeyStoreSettings(), "there is no certificate: set ssl.keystore.location"),
    "no file": (
        lambda: KeyStoreSettings(type="PEM", location="/absent"),
        "ssl.keystore.location=/absent cannot be read: No such file or directory",
    ),
    "type": (lambda: KeyStoreSettings(type="BKS", location="/x"), "ssl.keystore.type=BKS"),
    "key for JKS": (
        lambda: KeyStoreSettings(key=KEY, chain=CERTIFICATE),
        "SSL private key can be specified only for PEM, but key store type is JKS",
    ),
    "key alone": (
        lambda: KeyStoreSettings(type="PEM", key=KEY),
        "SSL private key is specified, but certificate chain is not specified.",
    ),
    "chain alone": (
        lambda: KeyStoreSettings(type="PEM", chain=CERTIFICATE),
        "SSL certificate chain is specified, but private key is not specified",
    ),
    "both": (
        lambda: inline(location="/x"),
        "Both SSL key store location and separate private key are specified.",
    ),
    "password inline": (
        lambda: inline(password="x"),
        "SSL key store password cannot be specified with PEM format",
    ),
    "password of PEM": (
        lambda: keys(PEM_FILE, "PEM", password="x"),
        "SSL key store password cannot be specified with PEM format",
    ),
    "password alone": (
        lambda: KeyStoreSettings(password="x"),
        "SSL key store is not specified, but key store password is specified.",
    ),
    "no password": (
        lambda: keys(pkcs12("s"), "PKCS12"),
        "SSL key store is specified, but key store password is not specified.",
    ),
    "wrong password": (
        lambda: keys(pkcs12("s"), "PKCS12", password="x"),
        "cannot be opened: ssl.keystore.password is wrong, or the file is damaged",
    ),
    "wrong password of JKS": (
        lambda: keys(jks_store("s"), "JKS", password="x"),
        "cannot be opened: ssl.keystore.password is wrong, or the file is damaged",
    ),
    "wrong password of a key": (
        lambda: keys(jks_store("s", "k"), "JKS", password="s"),
        "the private key broker cannot be decrypted: ssl.key.password is wrong",
    ),
    "two passwords": (
        lambda: keys(pkcs12("s"), "PKCS12", password="s", key_password="k"),
        "a PKCS12 store has one password",
    ),
    "damaged": (lambda: keys(jks_store("s")[:200], "JKS", password="s"), "cannot be"),
    "no store": (lambda: keys(b"hello", "JKS", password="s"), "is no key store"),
    "PEM as JKS": (
        lambda: keys(PEM_FILE, "JKS", password="s"),
        "is of type PEM, not JKS: set ssl.keystore.type=PEM",
    ),
    "JKS as PEM": (
        lambda: keys(jks_store("s"), "PEM"),
        "is of type JKS, not PEM: set ssl.keystore.type=JKS",
    ),
    "trust store": (
        lambda: keys(pkcs12("s", with_key=False), "PKCS12", password="s"),
        "holds no private key: is it a trust store?",
    ),
    "trust store of JKS": (
        lambda: keys(jks_store("s", with_key=False), "JKS", password="s"),
        "holds no private key: is it a trust store?",
    ),
    "no key in PEM": (
        lambda: keys(CERTIFICATE.encode(), "PEM"),
        "no private key is in it (BEGIN PRIVATE KEY)",
    ),
    "no certificate in PEM": (
        lambda: keys(KEY.encode(), "PEM"),
        "no certificate is in it (BEGIN CERTIFICATE)",
    ),
    "encrypted": (
        lambda: inline(encrypted_key("s")),
        "the private key is encrypted: set ssl.key.password",
    ),
    "wrong password of PEM": (
        lambda: inline(encrypted_key("s"), key_password="x"),
        "ssl.key.password is wrong, or it is damaged",
    ),
    "damaged key": (
        lambda: inline(KEY[:60] + KEY[90:]),
        "the private key cannot be read: it is damaged",
    ),
    "damaged certificate": (
        lambda: inline(chain=CERTIFICATE[:99] + CERTIFICATE[120:]),
        "a certificate cannot be read",
    ),
    "another key": (
        lambda: inline(client_identity().key_pem().decode()),
        "the certificate is for another private key",
    ),
    "no text": (lambda: keys(b"\xff-----BEGIN X", "PEM"), "is not text, as PEM is"),
    "no file of trust": (
        lambda: TrustStoreSettings(type="PEM", location="/absent"),
        "ssl.truststore.location=/absent cannot be read: No such file or directory",
    ),
    "type of trust": (lambda: TrustStoreSettings(type="X", location="/x"), "ssl.truststore.type=X"),
    "trust for JKS": (
        lambda: TrustStoreSettings(certificates=CERTIFICATE),
        "SSL trust store certs can be specified only for PEM, but trust store type is JKS",
    ),
    "both of trust": (
        lambda: TrustStoreSettings(type="PEM", certificates=CERTIFICATE, location="/x"),
        "Both SSL trust store location and separate trust certificates are specified.",
    ),
    "password inline of trust": (
        lambda: TrustStoreSettings(type="PEM", certificates=CERTIFICATE, password="x"),
        "SSL trust store password cannot be specified for PEM format.",
    ),
    "password of PEM of trust": (
        lambda: trust(CERTIFICATE.encode(), "PEM", password="x"),
        "SSL trust store password cannot be specified for PEM format.",
    ),
    "password alone of trust": (
        lambda: TrustStoreSettings(password="x"),
        "SSL trust store is not specified, but trust store password is specified.",
    ),
    "no password of trust": (
        lambda: trust(jks_store("s", with_key=False), "JKS"),
        "a JKS store is read with its password: set ssl.truststore.password",
    ),
    "no password of trust in PKCS12": (
        lambda: trust(pkcs12("s", with_key=False), "PKCS12"),
        "it is encrypted: set ssl.truststore.password",
    ),
    "wrong password of trust": (
        lambda: trust(pkcs12("s", with_key=False), "PKCS12", password="x"),
        "ssl.truststore.password is wrong",
    ),
    "no trust": (
        lambda: trust(jks_store("s"), "JKS", password="s"),
        "holds no trusted certificate",
    ),
}


@pytest.mark.parametrize(("make", "text"), PROBLEMS.values(), ids=PROBLEMS)
def test_s_tls_3_what_is_wrong_with_a_store_is_said_in_a_line(make: Made, text: str) -> None:
    settings = make()
    with pytest.raises(TlsProblem) as caught:
        if isinstance(settings, KeyStoreSettings):
            load_key_store(settings, read)
        else:
            load_trust_store(settings, read)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_without_the_extra_a_jks_store_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = keys(jks_store("s"), "JKS", password="s")
    monkeypatch.setitem(__import__("sys").modules, "jks", None)
    with pytest.raises(TlsProblem, match=r"pip install 'pykafkalog\[jks\]'"):
        load_key_store(settings, read)


def test_passwords_and_keys_are_not_shown() -> None:
    shown = repr(KeyStoreSettings(type="PEM", key=KEY, password="hush", key_password="hush"))
    assert "hush" not in shown
    assert KEY[40:60] not in shown
    assert "hush" not in repr(TrustStoreSettings(password="hush"))
