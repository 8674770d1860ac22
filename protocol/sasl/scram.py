"""The formulas of SCRAM (RFC 5802, section 3) and credentials as Kafka stores them.

    SaltedPassword  := PBKDF2(password, salt, iterations)
    ClientKey       := HMAC(SaltedPassword, "Client Key")
    StoredKey       := H(ClientKey)
    ServerKey       := HMAC(SaltedPassword, "Server Key")
    ClientSignature := HMAC(StoredKey, AuthMessage)
    ClientProof     := ClientKey XOR ClientSignature
    ServerSignature := HMAC(ServerKey, AuthMessage)

A broker keeps salt, iterations, StoredKey and ServerKey: enough to verify a proof, not to make one.
Passwords are UTF-8 and not prepared (RFC 4013), as in Kafka's `ScramFormatter`.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
DEFAULT_ITERATIONS: Final = 4096
"""The iterations that Kafka's tools take by default."""

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NONCE_BITS: Final = 130


class ScramMechanism(Enum):
    """A mechanism, by its name. `ScramMechanism("SCRAM-SHA-256")` raises ValueError for others."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def wire_id(self) -> int:
        """Its number in requests (Kafka's `ScramMechanism.type`)."""
        return 1 if self is ScramMechanism.SHA_256 else 2

    @property
    def hash_name(self) -> str:
        """The name of its hash for `hashlib`."""
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """HMAC with its hash."""
        return hmac.digest(key, data, self.hash_name)

    def hash(self, data: bytes) -> bytes:
        """Its hash."""
        return hashlib.new(self.hash_name, data).digest()


BY_WIRE_ID: Final = {mechanism.wire_id: mechanism for mechanism in ScramMechanism}


class ScramCredential(NamedTuple):
    """The keys made of a user's password, for one mechanism; `repr` does not show them."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


def salted_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> bytes:
    """SaltedPassword. Takes milliseconds, and lets other threads run meanwhile."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """The credential that a broker stores for a salted password."""
    return ScramCredential(
        salt,
        mechanism.hash(mechanism.hmac(salted, b"Client Key")),
        mechanism.hmac(salted, b"Server Key"),
        iterations,
    )


def new_credential(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> ScramCredential:
    """The credential that a broker stores for a password. Takes milliseconds."""
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_of(mechanism, salted, salt, iterations)


def client_proof(mechanism: ScramMechanism, salted: bytes, auth_message: bytes) -> bytes:
    """ClientProof."""
    key = mechanism.hmac(salted, b"Client Key")
    return _xor(key, mechanism.hmac(mechanism.hash(key), auth_message))


def proof_is_right(
    mechanism: ScramMechanism, credential: ScramCredential, auth_message: bytes, proof: bytes
) -> bool:
    """Whether the proof was made from the password of the credential. Always the same work."""
    signature = mechanism.hmac(credential.stored_key, auth_message)
    key = _xor(signature, proof if len(proof) == len(signature) else bytes(len(signature)))
    return hmac.compare_digest(mechanism.hash(key), credential.stored_key)


def server_signature(mechanism: ScramMechanism, server_key: bytes, auth_message: bytes) -> bytes:
    """ServerSignature."""
    return mechanism.hmac(server_key, auth_message)


def server_key_of(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """ServerKey."""
    return mechanism.hmac(salted, b"Server Key")


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def random_text(random_bits: Callable[[int], int]) -> str:
    """130 random bits in base 36: what Kafka takes for nonces, and as UTF-8 for salts."""
    number = random_bits(_NONCE_BITS)
    digits = []
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)) or "0"


def text_of_credential(credential: ScramCredential) -> str:
    """A credential as Kafka stores it in the configs of a user (`ScramCredentialUtils`)."""
    salt, stored_key, server_key = (base64.b64encode(part).decode() for part in credential[:3])
    return (
        f"salt={salt},stored_key={stored_key},server_key={server_key},"
        f"iterations={credential.iterations}"
    )


def credential_of_text(text: str) -> ScramCredential:
    """Parse what `text_of_credential` gives. Raises ValueError, which does not show the text."""
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        if len(parts) != 4:
            raise KeyError
        return ScramCredential(
            base64.b64decode(parts["salt"], validate=True),
            base64.b64decode(parts["stored_key"], validate=True),
            base64.b64decode(parts["server_key"], validate=True),
            int(parts["iterations"]),
        )
    except (KeyError, binascii.Error, ValueError):
        raise ValueError("Credentials not valid") from None
