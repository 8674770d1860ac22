"""Names as Java prints them; tests/conformance/test_tls_against_java.py asks Java itself."""

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.support.certificates import broker_identity, client_identity
from tls.names import alternative_names, distinguished_name, name_in_java


def name(*parts: tuple[x509.ObjectIdentifier, str]) -> str:
    return name_in_java(
        x509.Name([x509.NameAttribute(*part, _validate=False) for part in parts]).public_bytes()
    )


def test_s_tls_1_the_last_part_comes_first() -> None:
    assert distinguished_name(client_identity().certificate) == "CN=alice,O=pykafkalog trial"
    assert name() == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a,b", "CN=a\\,b"),
        ("a+b=c", "CN=a\\+b\\=c"),
        ('"x" <y>;#\\', 'CN=\\"x\\" \\<y\\>\\;\\#\\\\'),
        ("  a b  ", "CN=\\ \\ a b\\ \\ "),
        ("  ", "CN=\\ \\ "),
        ("a\0b", "CN=a\\00b"),
        ("ä中", "CN=ä中"),
    ],
)
def test_s_tls_1_signs_are_escaped_as_by_java(value: str, shown: str) -> None:
    assert name((NameOID.COMMON_NAME, value)) == shown


def test_s_tls_1_what_has_no_keyword_is_shown_by_number_and_bytes() -> None:
    shown = name((NameOID.COMMON_NAME, "a"), (NameOID.EMAIL_ADDRESS, "a@b"))
    assert shown == "1.2.840.113549.1.9.1=#1603614062,CN=a"
    assert name((NameOID.SERIAL_NUMBER, "7")) == "2.5.4.5=#130137"


def test_s_tls_1_parts_that_stand_together_stay_so() -> None:
    both = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.USER_ID, "b")]
    )
    country = x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.COUNTRY_NAME, "DE")])
    shown = name_in_java(x509.Name([country, both]).public_bytes())
    assert shown in ("CN=a+UID=b,C=DE", "UID=b+CN=a,C=DE")


def test_alternative_names_are_told_with_their_kind() -> None:
    assert alternative_names(broker_identity().certificate) == {
        "DNSName:localhost",
        "DNSName:memory",
        "IPAddress:127.0.0.1",
    }
    assert alternative_names(client_identity().certificate) == frozenset()
