"""docs/differences.md names what is not there; what is there now must go from it."""

import re

from broker.api.registry import ADVERTISED
from config.broker_config import BrokerConfig
from config.topic_keys import TOPIC_KEYS
from protocol.api_keys import ApiKey
from tests.support.installation import ROOT

PAGE = (ROOT / "docs/differences.md").read_text()


def test_the_apis_that_are_not_advertised_are_named() -> None:
    named = PAGE.partition("<!-- not advertised")[2].partition("-->\n")[2].partition("<!-- end")[0]
    names = {name.lower() for name in re.findall(r"\w+", named)}
    assert names == {key.name.replace("_", "").lower() for key in ApiKey if key not in ADVERTISED}


def test_the_settings_that_have_other_defaults_or_an_effect_are_as_it_says() -> None:
    assert TOPIC_KEYS["cleanup.policy"].effective
    config = BrokerConfig.parse({})
    assert config.listeners
    for name in ("num.io.threads", "metrics.http.listener", "incomplete.request.max.bytes"):
        assert f"`{name}`" in PAGE
