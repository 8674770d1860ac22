"""Passwords in the dynamic configs of brokers, encrypted as Kafka keeps them in ZooKeeper.

    cipherAlgorithm:AES/CBC/PKCS5Padding,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,keyLength:128,
    iterations:4096,salt:…,initializationVector:…,encryptedPassword:…,passwordLength:8

The key is derived from `password.encoder.secret`, which all brokers of a cluster have. How a value
was encrypted stands in it, so the other settings are those of new values only.

Source: `org.apache.kafka.security.EncryptingPasswordEncoder` (3.9).
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.java_hash import java_length
from config.definition import ConfigError

if TYPE_CHECKING:
    from config.broker_config import BrokerConfig

_HASHES: Final = {
    f"PBKDF2WithHmac{java}": name
    for java, name in (
        ("SHA1", "sha1"),
        ("SHA224", "sha224"),
        ("SHA256", "sha256"),
        ("SHA384", "sha384"),
        ("SHA512", "sha512"),
    )
}
CBC: Final = "AES/CBC/PKCS5Padding"
GCM: Final = "AES/GCM/NoPadding"
_KEY_LENGTHS: Final = (128, 192, 256)
_SALT_BYTES: Final = 256
_TAG_BYTES: Final = 16
_IV_BYTES: Final = {CBC: 16, GCM: 12}
_BLOCK_BITS: Final = 128


class PasswordEncoder:
    """Encrypts and decrypts with the secrets of one broker's configuration."""

    def __init__(self, config: "BrokerConfig", random_bytes: Callable[[int], bytes]) -> None:
        self._secret = config.password_encoder_secret
        self._old_secret = config.password_encoder_old_secret
        self._key_factory = config.password_encoder_keyfactory_algorithm or "PBKDF2WithHmacSHA512"
        self._cipher = config.password_encoder_cipher_algorithm
        self._key_length = config.password_encoder_key_length
        self._iterations = config.password_encoder_iterations
        self._random_bytes = random_bytes

    def encode(self, password: str) -> str:
        """Encrypt. Raises ConfigError without a secret, and for algorithms that are not served."""
        if self._secret is None:
            raise ConfigError("Password encoder secret not configured (password.encoder.secret)")
        how: dict[str, Any] = {
            "keyFactoryAlgorithm": self._key_factory,
            "cipherAlgorithm": self._cipher,
            "keyLength": self._key_length,
            "iterations": self._iterations,
        }
        _check(how)
        salt = self._random_bytes(_SALT_BYTES)
        iv = self._random_bytes(_IV_BYTES[self._cipher])
        key = _key(self._secret.value, how, salt)
        encrypted = _encrypt(self._cipher, key, iv, password.encode())
        how |= {
            "salt": _text(salt),
            "initializationVector": _text(iv),
            "encryptedPassword": _text(encrypted),
            "passwordLength": java_length(password),
        }
        if self._cipher == GCM:
            how["authenticationTagLength"] = _TAG_BYTES * 8
        return ",".join(f"{name}:{value}" for name, value in how.items())

    def decode(self, text: str) -> str:
        """Decrypt with the secret, or the old one. Raises ConfigError with the reason."""
        secrets = [one for one in (self._secret, self._old_secret) if one is not None]
        if not secrets:
            raise ConfigError("Password encoder secret not configured (password.encoder.secret)")
        how = _parsed(text)
        for secret in secrets:
            password = _decrypted(secret.value, how)
            if password is not None:
                return password
        raise ConfigError("Password could not be decoded: password.encoder.secret is another one")


def _parsed(text: str) -> dict[str, Any]:
    fields = dict(field.partition(":")[::2] for field in text.split(","))
    try:
        how: dict[str, Any] = {
            name: fields[name] for name in ("keyFactoryAlgorithm", "cipherAlgorithm")
        }
        for name in ("keyLength", "iterations", "passwordLength"):
            how[name] = int(fields[name])
        for name in ("salt", "initializationVector", "encryptedPassword"):
            how[name] = base64.b64decode(fields[name], validate=True)
    except (KeyError, ValueError):
        raise ConfigError("Password could not be decoded: it is not encrypted as Kafka's") from None
    _check(how)
    return how


def _check(how: Mapping[str, Any]) -> None:
    """Raise ConfigError for what is not served."""
    for name, served in (
        ("keyFactoryAlgorithm", tuple(_HASHES)),
        ("cipherAlgorithm", tuple(_IV_BYTES)),
        ("keyLength", _KEY_LENGTHS),
    ):
        if how[name] not in served:
            raise ConfigError(
                f"Passwords are encrypted with a {name} out of {', '.join(map(str, served))}, "
                f"not with {how[name]}"
            )


def _key(secret: str, how: Mapping[str, Any], salt: bytes) -> bytes:
    name = _HASHES[how["keyFactoryAlgorithm"]]
    size = how["keyLength"] // 8
    return hashlib.pbkdf2_hmac(name, secret.encode(), salt, how["iterations"], size)


def _encrypt(cipher: str, key: bytes, iv: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    if cipher == GCM:
        return AESGCM(key).encrypt(iv, data, None)
    padder = PKCS7(_BLOCK_BITS).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    return encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize()


def _decrypted(secret: str, how: Mapping[str, Any]) -> str | None:
    """The password; None if it was encrypted with another secret."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    key, iv, data = (
        _key(secret, how, how["salt"]),
        how["initializationVector"],
        how["encryptedPassword"],
    )
    try:
        if how["cipherAlgorithm"] == GCM:
            found = AESGCM(key).decrypt(iv, data, None)
        else:
            decryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor()
            unpadder = PKCS7(_BLOCK_BITS).unpadder()
            padded = decryptor.update(data) + decryptor.finalize()
            found = unpadder.update(padded) + unpadder.finalize()
        password = found.decode()
    except (InvalidTag, ValueError):
        return None
    return password if java_length(password) == how["passwordLength"] else None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
