"""SASL settings of Java's clients become librdkafka's."""

import pytest

from config.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE
from tools.client_properties import for_librdkafka
from tools.errors import CommandError

JAAS = "sasl.jaas.config"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


@pytest.mark.parametrize("module", [PLAIN_MODULE, SCRAM_MODULE])
def test_user_and_password(module: str) -> None:
    text = f'{module} required username="al ice" password="se\\"cret";'
    found = for_librdkafka({"sasl.mechanism": "PLAIN", JAAS: text})
    assert found == {
        "sasl.mechanism": "PLAIN",
        "sasl.username": "al ice",
        "sasl.password": 'se"cret',
    }


def test_what_is_set_beside_goes_before_it() -> None:
    text = f'{PLAIN_MODULE} required username="a" password="b";'
    found = for_librdkafka({"sasl.password": "c", JAAS: text})
    assert found == {"sasl.username": "a", "sasl.password": "c"}


def test_unsecured_tokens() -> None:
    text = (
        f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="alice"'
        ' unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_pool="one" other="x";'
    )
    assert for_librdkafka({JAAS: text}) == {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=alice lifeSeconds=60 extension_pool=one",
    }


@pytest.mark.parametrize(
    "settings",
    [
        {
            JAAS: f'{OAUTH_MODULE} required clientId="me" clientSecret="s" scope="x"'
            ' extension_pool="one" extension_cluster="two";'
        },
        {
            JAAS: f'{OAUTH_MODULE} required extension_pool="one" extension_cluster="two";',
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": "s",
            "sasl.oauthbearer.scope": "x",
        },
    ],
)
def test_tokens_of_an_issuer(settings: dict[str, str]) -> None:
    assert for_librdkafka({ENDPOINT: "https://issuer", **settings}) == {
        ENDPOINT: "https://issuer",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "x",
        "sasl.oauthbearer.extensions": "pool=one,cluster=two",
    }


def test_what_only_java_knows_is_left_out() -> None:
    javas = {
        "sasl.login.callback.handler.class": "x",
        "sasl.login.refresh.window.factor": "0.8",
        "sasl.client.callback.handler.class": "x",
        "sasl.kerberos.ticket.renew.jitter": "0.05",
        "sasl.oauthbearer.jwks.endpoint.url": "x",
        "sasl.oauthbearer.header.urlencode": "x",
    }
    kept = {"sasl.mechanism": "PLAIN", "sasl.kerberos.service.name": "kafka"}
    assert for_librdkafka({**javas, **kept}) == kept


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x", "control flag not specified"),
        ("com.sun.Krb5LoginModule required;", r"nothing of com\.sun\.Krb5LoginModule"),
        (f'{SCRAM_MODULE} required username="a" password="b" tokenauth="true";', "tokenauth"),
        (f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="a b";', "has a blank"),
    ],
)
def test_a_text_that_cannot_be_used_is_told(text: str, told: str) -> None:
    with pytest.raises(CommandError, match=told):
        for_librdkafka({JAAS: text})
