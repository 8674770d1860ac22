import base64
import hashlib
import hmac
from random import Random

import pytest

from protocol.sasl.scram import (
    ScramCredential,
    ScramMechanism,
    client_proof,
    credential_of_text,
    new_credential,
    proof_is_right,
    random_text,
    salted_password,
    server_key_of,
    text_of_credential,
)

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512

# RFC 7677, section 3.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SIGNED = (
    f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}"
).encode()
PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def hi(password: bytes, salt: bytes, iterations: int, name: str) -> bytes:
    """`Hi` as RFC 5802 writes it down."""
    step = hmac.new(password, salt + b"\0\0\0\1", name).digest()
    result = int.from_bytes(step, "big")
    for _ in range(iterations - 1):
        step = hmac.new(password, step, name).digest()
        result ^= int.from_bytes(step, "big")
    return result.to_bytes(len(step), "big")


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_the_formulas_of_rfc_5802(mechanism: ScramMechanism) -> None:
    name = mechanism.hash_name
    salted = hi("pässword".encode(), b"salt", 7, name)
    assert salted_password(mechanism, "pässword", b"salt", 7) == salted
    key = hmac.new(salted, b"Client Key", name).digest()
    stored = hashlib.new(name, key).digest()
    server = hmac.new(salted, b"Server Key", name).digest()
    credential = ScramCredential(b"salt", stored, server, 7)
    assert new_credential(mechanism, "pässword", b"salt", 7) == credential
    signature = hmac.new(stored, b"signed", name).digest()
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    assert client_proof(mechanism, salted, b"signed") == proof
    assert proof_is_right(mechanism, credential, b"signed", proof)
    assert server_key_of(mechanism, salted) == server


@pytest.mark.parametrize(
    "proof", [b"", PROOF[:-1], PROOF + b"\0", bytes(32), PROOF[:-1] + bytes([PROOF[-1] ^ 1])]
)
def test_another_proof_is_wrong(proof: bytes) -> None:
    credential = new_credential(SHA_256, "pencil", SALT, 4096)
    assert not proof_is_right(SHA_256, credential, SIGNED, proof)


def test_a_proof_is_for_what_was_signed() -> None:
    credential = new_credential(SHA_256, "pencil", SALT, 4096)
    assert not proof_is_right(SHA_256, credential, SIGNED + b"x", PROOF)


def test_mechanisms_have_the_names_and_numbers_of_kafkas() -> None:
    assert [(one.value, one.wire_id) for one in ScramMechanism] == [
        ("SCRAM-SHA-256", 1),
        ("SCRAM-SHA-512", 2),
    ]


def test_a_credential_is_stored_as_kafka_stores_it() -> None:
    credential = ScramCredential(b"salt", b"stored", b"server", 4096)
    text = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096"
    assert text_of_credential(credential) == text
    assert credential_of_text(text) == credential
    other_order = ",".join(reversed(text.split(",")))
    assert credential_of_text(other_order) == credential


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy",
        "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=x",
        "salt=?,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096",
        "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096,more=1",
        "salt=c2FsdA==,stored_key=c3RvcmVk,server_kei=c2VydmVy,iterations=4096",
    ],
)
def test_what_is_no_credential_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"^Credentials not valid$"):
        credential_of_text(text)


def test_a_credential_does_not_show_its_keys() -> None:
    assert repr(ScramCredential(b"a", b"b", b"c", 4096)) == "ScramCredential(iterations=4096)"


def test_random_text_is_130_bits_in_base_36() -> None:
    assert random_text(lambda bits: 36 * 35 + 10) == "za"
    assert random_text(lambda bits: 0) == "0"
    text = random_text(Random(1).getrandbits)
    assert int(text, 36) == Random(1).getrandbits(130)
