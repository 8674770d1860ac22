"""Certificates for trying TLS are what every client accepts."""

import time

import pytest
from cryptography import x509

from tests.support.certificates import authority
from tls.authority import Authority


def test_what_it_signs_is_verified_by_it_and_valid_for_the_days_asked_for() -> None:
    now = time.time()
    maker = Authority.new(now, 3)
    for identity in (maker.server(["a.example", "::1"]), maker.client("bob")):
        identity.certificate.verify_directly_issued_by(maker.identity.certificate)
        lifetime = identity.certificate.not_valid_after_utc.timestamp() - now
        assert lifetime == pytest.approx(3 * 86_400, abs=2)
        assert identity.certificate.not_valid_before_utc.timestamp() < now


def test_a_broker_has_its_names_and_addresses_and_a_client_may_not_pose_as_one() -> None:
    server = authority().server(["a.example", "10.0.0.1", "::1"]).certificate
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1", "::1"]
    client = authority().client("bob").certificate
    purposes = client.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert x509.ExtendedKeyUsageOID.SERVER_AUTH not in purposes


def test_one_that_was_made_before_goes_on() -> None:
    identity = authority().identity
    again = Authority.read(identity.certificate_pem(), identity.key_pem(), time.time(), 1)
    again.client("carol").certificate.verify_directly_issued_by(identity.certificate)
    other = authority("other").identity
    with pytest.raises(ValueError, match="not that of the certificate"):
        Authority.read(identity.certificate_pem(), other.key_pem(), time.time(), 1)
