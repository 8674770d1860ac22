"""A client's settings as Kafka's own tools read them, for librdkafka and for `tools.wire`.

`--command-config` takes the file that Kafka's tools take (`security.protocol`, `ssl.truststore.…`,
`ssl.keystore.…`), and librdkafka's names as well. Java's stores are read here and handed on as PEM,
because librdkafka reads only some of them; what only Java knows is left out. Each family of
settings has a function of its own: `_encryption` is TLS, `_authentication` SASL.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from tools.errors import CommandError
from tools.usage import guess_of

Settings = dict[str, Any]

ENCRYPTED: Final = ("ssl", "sasl_ssl")
_JAVAS_STORES: Final = ("ssl.truststore.", "ssl.keystore.")
_ONLY_JAVAS: Final = re.compile(
    r"ssl\.(?:protocol|provider|enabled\.protocols|(?:keymanager|trustmanager)\.algorithm"
    r"|secure\.random\.implementation|engine\.factory\.class)|security\.providers"
    r"|(?:key|value)\.(?:de)?serializer|interceptor\.classes|metric\.reporters|metrics\..*"
    r"|buffer\.memory|(?:send|receive)\.buffer\.bytes|max\.(?:block\.ms|request\.size)"
    r"|default\.api\.timeout\.ms|metadata\.max\.idle\.ms|exclude\.internal\.topics"
    r"|socket\.connection\.setup\.timeout\.max\.ms|fetch\.max\.wait\.ms"
    r"|partitioner\..*|compression\.(?:gzip|lz4|zstd)\.level"
)
"""Names of Kafka's `AdminClientConfig` and its kin that librdkafka does not have."""
_OFTEN_SET: Final = (
    *("acks", "allow.auto.create.topics", "auto.offset.reset", "batch.size", "client.id"),
    *("client.rack", "compression.type", "debug", "delivery.timeout.ms", "enable.auto.commit"),
    *("enable.idempotence", "enable.ssl.certificate.verification", "fetch.max.bytes"),
    *("fetch.min.bytes", "group.id", "group.instance.id", "isolation.level", "linger.ms"),
    *("max.partition.fetch.bytes", "message.max.bytes", "metadata.max.age.ms", "partitioner"),
    *("request.timeout.ms", "retries", "retry.backoff.ms", "sasl.jaas.config", "sasl.mechanism"),
    *("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.method"),
    *("sasl.oauthbearer.token.endpoint.url", "sasl.password", "sasl.username"),
    *("security.protocol", "session.timeout.ms", "socket.timeout.ms", "ssl.ca.location"),
    *("ssl.certificate.location", "ssl.endpoint.identification.algorithm", "ssl.key.location"),
    *("ssl.key.password", "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type"),
    *("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type"),
    *("transaction.timeout.ms", "transactional.id"),
)
"""Names that people often set: the error of an unknown name suggests the nearest of them."""
_NO_NAME: Final = "no such setting"
_UNKNOWN: Final = re.compile(r'^No such configuration property: "(.*)"$', re.DOTALL)
_NAMES_OF_ALGORITHMS: Final = "ssl.endpoint.identification.algorithm"
_SUITES: Final = "ssl.cipher.suites"


def protocol_of(settings: Mapping[str, Any]) -> str:
    """The security protocol, in lower case."""
    return str(settings.get("security.protocol", "plaintext")).lower()


def mechanism_of(settings: Mapping[str, Any]) -> str:
    """The SASL mechanism, in librdkafka's names of settings."""
    return str(settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI")))


def for_librdkafka(settings: Mapping[str, Any]) -> Settings:
    """Return settings in librdkafka's names. Raises CommandError for one that is unusable."""
    return _authentication(_encryption(dict(settings)))


def require_known(settings: Mapping[str, Any]) -> None:
    """Raise CommandError for a name, or a value, that librdkafka does not take.

    So commands that speak by `tools.wire` refuse the same settings as those that use librdkafka.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        AdminClient(
            {**settings, _NO_NAME: ""}
        )  # stops at the first that is wrong, and makes nothing
    except (KafkaException, TypeError, ValueError) as error:
        reason = str(error.args[0].str() if isinstance(error, KafkaException) else error)
    found = _UNKNOWN.search(reason)
    if found is None:
        raise CommandError(reason)
    if found[1] != _NO_NAME:
        guess = guess_of(found[1], _OFTEN_SET)
        raise CommandError(f"{found[1]} is no setting of a client{guess}")


def _authentication(settings: Settings) -> Settings:
    if not any(name.startswith("sasl.") for name in settings):
        return settings
    from tools.java_logins import in_librdkafkas_names

    return in_librdkafkas_names(settings)


def _encryption(settings: Settings) -> Settings:
    settings = {name: value for name, value in settings.items() if not _ONLY_JAVAS.fullmatch(name)}
    if settings.get(_NAMES_OF_ALGORITHMS) == "":
        settings[_NAMES_OF_ALGORITHMS] = "none"
    if str(settings.get(_SUITES, "")).startswith("TLS_"):
        settings[_SUITES] = _suites(str(settings[_SUITES]))
        if not settings[_SUITES]:
            del settings[_SUITES]
    stores = {name: settings[name] for name in settings if name.startswith(_JAVAS_STORES)}
    if stores:
        for name in stores:
            del settings[name]
        settings |= _pem_of(stores, settings.pop("ssl.key.password", None))
    return settings


def _suites(names: str) -> str:
    """OpenSSL's names of Java's; those of TLS 1.3 are the library's own."""
    from tls.problems import TlsProblem
    from tls.settings import SERVED_PROTOCOLS
    from tls.suites import chosen_suites

    words = tuple(name.strip() for name in names.split(","))
    try:
        return chosen_suites(words, SERVED_PROTOCOLS).ciphers or ""
    except TlsProblem as problem:
        raise CommandError(str(problem)) from None


def _pem_of(stores: Settings, key_password: str | None) -> Settings:
    """Return the content of Java's stores as librdkafka takes it."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    from tls.problems import TlsProblem
    from tls.settings import JKS, KeyStoreSettings, TrustStoreSettings
    from tls.store_files import read_store_file
    from tls.stores import load_key_store, load_trust_store

    keys = KeyStoreSettings(
        type=stores.get("ssl.keystore.type", JKS),
        location=stores.get("ssl.keystore.location"),
        password=stores.get("ssl.keystore.password"),
        key_password=key_password,
        key=stores.get("ssl.keystore.key"),
        chain=stores.get("ssl.keystore.certificate.chain"),
    )
    trust = TrustStoreSettings(
        type=stores.get("ssl.truststore.type", JKS),
        location=stores.get("ssl.truststore.location"),
        password=stores.get("ssl.truststore.password"),
        certificates=stores.get("ssl.truststore.certificates"),
    )
    found: Settings = {}
    try:
        if trust.is_set:
            trusted = load_trust_store(trust, read_store_file)
            pem = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in trusted)
            found["ssl.ca.pem"] = pem.decode()
        if keys.is_set:
            store = load_key_store(keys, read_store_file)
            chain = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in store.chain)
            key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            found["ssl.certificate.pem"], found["ssl.key.pem"] = chain.decode(), key.decode()
    except TlsProblem as problem:
        raise CommandError(str(problem)) from None
    return found
