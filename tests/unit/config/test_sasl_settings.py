import pytest

from config.broker_config import BrokerConfig
from config.definition import ConfigError, Password
from config.effects import without_effect
from config.sasl_settings import (
    MechanismSettings,
    PlainSettings,
    SaslSettings,
    ScramSettings,
    SecuredTokens,
    UnsecuredTokens,
)

MECHANISMS = "sasl.enabled.mechanisms"
CHECK = "sasl.server.callback.handler.class"
JAAS = "listener.name.in.plain.sasl.jaas.config"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ONE_USER = f'{PLAIN} user_a="b";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
OAUTH_CHECK = f"listener.name.in.oauthbearer.{CHECK}"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)
SIGNED = {
    MECHANISMS: "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "file:/keys.json",
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.expected.issuer": "https://issuer",
}


def config(props: dict[str, str]) -> BrokerConfig:
    return BrokerConfig.parse(
        {
            "listeners": "PLAINTEXT://:9092,IN://:9093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,IN:SASL_PLAINTEXT",
            **props,
        }
    )


def settings(props: dict[str, str]) -> SaslSettings:
    return config(props).sasl["IN"]


def refusal(props: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        settings(props)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_broker_without_sasl_has_no_settings_of_it() -> None:
    assert BrokerConfig.parse({}).sasl == {}


def test_mechanisms_of_a_listener_replace_those_of_all_and_keep_their_order() -> None:
    found = settings(
        {
            MECHANISMS: "GSSAPI",
            "listener.name.in.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,SCRAM-SHA-512",
            JAAS: f'{PLAIN} username="admin" password="x" user_alice="1" user_bob="2";',
            "listener.name.in.scram-sha-512.sasl.jaas.config": SCRAM,
            "connections.max.reauth.ms": "1000",
            "listener.name.in.plain.connections.max.reauth.ms": "-5",
            "listener.name.in.sasl.server.max.receive.size": "99",
        }
    )
    users = {"alice": Password("1"), "bob": Password("2")}
    assert found == SaslSettings(
        mechanisms=(
            MechanismSettings(name="SCRAM-SHA-512", max_reauth_ms=1000, how=ScramSettings()),
            MechanismSettings(
                name="PLAIN", max_reauth_ms=0, how=PlainSettings(users=users, check=None)
            ),
        ),
        max_receive_bytes=99,
    )


def test_the_most_specific_key_wins() -> None:
    name = "connections.max.reauth.ms"
    props = {MECHANISMS: "SCRAM-SHA-256", name: "1"}
    assert settings(props).mechanisms[0].max_reauth_ms == 1
    props[f"listener.name.in.{name}"] = "2"
    assert settings(props).mechanisms[0].max_reauth_ms == 2
    props[f"listener.name.in.scram-sha-256.{name}"] = "3"
    assert settings(props).mechanisms[0].max_reauth_ms == 3


def test_plain_takes_a_check_in_python_instead_of_users() -> None:
    props = {MECHANISMS: "PLAIN", f"listener.name.in.plain.{CHECK}": "my.check:password_is_right"}
    (mechanism,) = settings(props).mechanisms
    assert mechanism.how == PlainSettings(users={}, check="my.check:password_is_right")


def test_signed_tokens() -> None:
    props = {
        **SIGNED,
        "sasl.oauthbearer.expected.audience": "a,b",
        "listener.name.in.oauthbearer.sasl.oauthbearer.sub.claim.name": "user",
        "listener.name.in.oauthbearer.sasl.jaas.config": OAUTH + ";",
        OAUTH_CHECK: "org.apache.kafka.common.security.oauthbearer."
        "OAuthBearerValidatorCallbackHandler",
    }
    (mechanism,) = settings(props).mechanisms
    assert mechanism.how == SecuredTokens(
        jwks_url="file:/keys.json",
        audiences=("a", "b"),
        issuer="https://issuer",
        clock_skew_s=30,
        scope_claim="scope",
        user_claim="user",
        refresh_ms=3_600_000,
        backoff_ms=100,
        most_backoff_ms=10_000,
    )


def test_unsecured_tokens_only_when_they_are_named() -> None:
    props = {
        MECHANISMS: "OAUTHBEARER",
        OAUTH_CHECK: UNSECURED,
        "listener.name.in.oauthbearer.sasl.jaas.config": f"{OAUTH} unsecuredValidatorPrincipalClaim"
        'Name="user" unsecuredValidatorRequiredScope="a b" '
        'unsecuredValidatorAllowableClockSkewMs="30";',
    }
    (mechanism,) = settings(props).mechanisms
    assert mechanism.how == UnsecuredTokens(
        user_claim="user", scope_claim="scope", required_scope=("a", "b"), clock_skew_ms=30
    )
    del props[OAUTH_CHECK]
    assert "listener.name.in.oauthbearer.sasl.oauthbearer.jwks.endpoint.url" in refusal(props)


@pytest.mark.parametrize("mechanisms", [{}, {MECHANISMS: "PLAIN,GSSAPI"}])
def test_kerberos_is_refused_with_what_to_set(mechanisms: dict[str, str]) -> None:
    """S-SEC-1: it is Kafka's default."""
    assert refusal({**mechanisms, JAAS: ONE_USER}) == (
        "Listener IN://:9093 would offer the SASL mechanism GSSAPI (Kerberos), Kafka's default,"
        " which this broker does not have: set listener.name.in.sasl.enabled.mechanisms to some of"
        " PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
    )


@pytest.mark.parametrize(
    ("props", "words"),
    [
        ({MECHANISMS: ""}, "offers no SASL mechanism"),
        ({MECHANISMS: "plain"}, "mechanism plain, which this broker does not have"),
        ({MECHANISMS: "PLAIN"}, f"set {JAAS}={PLAIN} user_NAME"),
        ({MECHANISMS: "PLAIN", "sasl.jaas.config": ONE_USER}, f"set {JAAS}={PLAIN} user_NAME"),
        ({MECHANISMS: "PLAIN", JAAS: "x"}, "control flag not specified"),
        ({MECHANISMS: "PLAIN", JAAS: SCRAM}, "the login module of PLAIN is"),
        (
            {MECHANISMS: "PLAIN", f"listener.name.in.plain.{CHECK}": "com.acme.Check"},
            "runs no Java classes",
        ),
        (
            {MECHANISMS: "SCRAM-SHA-256", f"listener.name.in.scram-sha-256.{CHECK}": "a:b"},
            "runs no Java classes",
        ),
        ({**SIGNED, OAUTH_CHECK: "com.acme.Check"}, "runs no Java classes"),
        ({**SIGNED, "sasl.oauthbearer.jwt.validator.class": "com.acme.Check"}, "no Java classes"),
        ({**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": "ftp://x"}, "https:, http: or file:"),
        ({**SIGNED, "sasl.oauthbearer.expected.audience": ""}, "whatever their claim aud is"),
        ({**SIGNED, "sasl.oauthbearer.expected.issuer": ""}, "whatever their claim iss is"),
        (
            {
                MECHANISMS: "OAUTHBEARER",
                OAUTH_CHECK: UNSECURED,
                "listener.name.in.oauthbearer.sasl.jaas.config": f"{OAUTH} "
                'unsecuredValidatorAllowableClockSkewMs="-1";',
            },
            "Allowable clock skew millis must not be negative",
        ),
    ],
)
def test_what_cannot_be_served_is_refused(props: dict[str, str], words: str) -> None:
    assert words in refusal(props)


@pytest.mark.parametrize("claim", ["audience", "issuer"])
def test_an_unverified_claim_must_be_allowed(claim: str) -> None:
    props = {**SIGNED, f"sasl.oauthbearer.allow.unverified.{claim}": "true"}
    del props[f"sasl.oauthbearer.expected.{claim}"]
    assert settings(props)


def test_a_password_is_not_shown_in_a_refusal() -> None:
    assert "secret" not in refusal({MECHANISMS: "PLAIN", JAAS: f'{SCRAM[:-1]} user_a="secret";'})


def test_keys_that_are_not_read_are_told() -> None:
    read = {
        "listener.name.in.sasl.enabled.mechanisms": "PLAIN",
        JAAS: ONE_USER,
        "listener.name.in.connections.max.reauth.ms": "1",
        "listener.name.in.plain.connections.max.reauth.ms": "1",
    }
    unread = {
        "sasl.jaas.config": ONE_USER,
        "listener.name.in.sasl.jaas.config": ONE_USER,
        "listener.name.in.scram-sha-256.sasl.jaas.config": SCRAM,
        "listener.name.plaintext.plain.sasl.jaas.config": ONE_USER,
        "listener.name.in.oauthbearer.sasl.login.class": "a.B",
    }
    assert without_effect(config({**read, **unread})) == sorted(unread)
