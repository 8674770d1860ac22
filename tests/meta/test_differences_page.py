"""docs/differences.md names what is not there; what is there now must go from it."""

import re
from collections.abc import Iterable

from broker.components import BACKLOG, socket_settings
from broker.registry import ADVERTISED, advertised, cluster_apis
from broker.world.transport import SYSTEM_DEFAULT
from config.broker_config import BrokerConfig
from config.broker_keys import BROKER_KEYS
from protocol.api_keys import ApiKey
from tests.support.installation import ROOT

PAGE = (ROOT / "docs/differences.md").read_text()


def names_of(keys: Iterable[ApiKey]) -> set[str]:
    return {key.name.replace("_", "").lower() for key in keys}


def named_after(comment: str) -> set[str]:
    """The names between a comment that begins so and the next."""
    named = PAGE.partition(f"<!-- {comment}")[2].partition("-->\n")[2].partition("<!-- end")[0]
    return {name.lower() for name in re.findall(r"\w+", named)}


def test_the_apis_that_are_not_advertised_are_named() -> None:
    assert named_after("not advertised") == names_of(set(ApiKey) - set(ADVERTISED))


def test_the_apis_that_only_a_member_of_a_cluster_advertises_are_named() -> None:
    members = set(advertised(cluster_apis().values())) - set(ADVERTISED)
    assert named_after("in a cluster") == names_of(members)
    assert f"serves {('no', 'one', 'two', 'three', 'four', 'five', 'six')[len(members)]} of" in PAGE


def test_the_defaults_that_differ_are_as_it_says() -> None:
    """That the tables of keys have Kafka's defaults is held by the conformance tests."""
    sentence = (
        "* Three defaults are other ones as long as nobody sets them: `socket.send.buffer.bytes` "
        "and `socket.receive.buffer.bytes` are left to the system, "
        f"`socket.listen.backlog.size` is {BACKLOG}."
    )
    assert sentence in re.sub(r"\s+", " ", PAGE)
    keys = [f"socket.{end}" for end in ("send.buffer.bytes", "receive.buffer.bytes")]
    keys.append("socket.listen.backlog.size")
    for props, sizes in (
        ({}, [SYSTEM_DEFAULT, SYSTEM_DEFAULT, BACKLOG]),
        (dict.fromkeys(keys, "50"), [50] * 3),
    ):
        config = BrokerConfig.parse(props)
        made = socket_settings(config, check_buffers=False, max_descriptors=100)
        assert [made.send_buffer, made.receive_buffer, made.backlog] == sizes
    assert not {BROKER_KEYS[key].default for key in keys} & {SYSTEM_DEFAULT, BACKLOG}


def test_the_settings_that_are_this_brokers_own_are_named() -> None:
    sentence = PAGE.partition("* `log.dirs=memory:` is this broker's own")[2].partition("\n* ")[0]
    assert set(re.findall(r"`([\w.]+)`", sentence)) == {k.name for k in BROKER_KEYS if k.own}
