"""Settings as a broker describes them, and what of them is shown."""

import argparse
import json
from typing import Any

import pytest

from config.broker_keys import BROKER_KEYS
from config.topic_keys import TOPIC_KEYS
from protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from tools.configs import command, listing
from tools.configs.settings import Entity, Kind, Setting, Source, _setting

TOPIC = Entity(kind=Kind.TOPIC, name="orders")


def told(name: str, value: str | None, *synonyms: tuple[int, str, str | None], **more: Any) -> Any:
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        config_source=synonyms[0][0] if synonyms else 5,
        synonyms=[DescribeConfigsSynonym(source=s, name=n, value=v) for s, n, v in synonyms],
        **{"documentation": None, **more},
    )


def settings() -> list[Setting]:
    inert = TOPIC_KEYS["remote.log.copy.disable"].documentation
    return [
        _setting(each)
        for each in (
            told(
                "retention.ms", "60", (1, "retention.ms", "60"), (5, "log.retention.hours", "168")
            ),
            told(
                "segment.bytes", "9", (4, "log.segment.bytes", "9"), (5, "log.segment.bytes", "8")
            ),
            told(
                "remote.log.copy.disable",
                "true",
                (3, "remote.log.copy.disable", "true"),
                documentation=inert,
            ),
            told("preallocate", "false", (5, "log.preallocate", "false")),
            told("ssl.keystore.password", None, (4, "x", None), is_sensitive=True),
        )
    ]


def shown(capsys: pytest.CaptureFixture[str], entity: Entity = TOPIC, **given: bool) -> list[str]:
    usual = {"all": False, "changed": False, "no_effect": False, "explain": None, "json": True}
    command._show(settings(), entity, argparse.Namespace(**{**usual, **given}))
    return [each["name"] for each in json.loads(capsys.readouterr().out)]


def test_which_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys) == ["retention.ms"]
    assert shown(capsys, Entity(kind=Kind.BROKER, name="1")) == ["remote.log.copy.disable"]
    changed = ["retention.ms", "segment.bytes", "remote.log.copy.disable"]
    assert shown(capsys, changed=True) == [*changed, "ssl.keystore.password"]
    assert shown(capsys, no_effect=True) == ["remote.log.copy.disable"]
    assert len(shown(capsys, all=True)) == 5


def test_defaults_are_of_the_same_unit() -> None:
    by_name = {each.name: each for each in settings()}
    assert by_name["retention.ms"].default is None
    assert by_name["segment.bytes"].default == "8"
    assert by_name["preallocate"].source is Source.DEFAULT


def test_what_has_no_effect_is_told_by_the_documentation_alone() -> None:
    """Every key of the tables: the tool reads it as the table has it."""
    for key in (*TOPIC_KEYS, *BROKER_KEYS):
        setting = _setting(told(key.name, "1", documentation=key.documentation))
        assert setting.without_effect is not key.effective, key.name


def test_a_table_hides_secrets_and_names_what_does_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listing.show_settings(settings(), as_json=False, nothing="")
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert lines["ssl.keystore.password"] == ["(hidden)", "server.properties", "-"]
    assert lines["remote.log.copy.disable"] == ["true", "cluster,", "dynamic", "none"]
    assert lines["retention.ms"] == ["60", "topic", "-"]


@pytest.mark.parametrize(
    ("word", "pairs"),
    [
        ("a=1", ["a=1"]),
        ("a=1,b.c=2", ["a=1", "b.c=2"]),
        ("a=x,y", ["a=x,y"]),
        ("a=x,y,b=1", ["a=x,y", "b=1"]),
        ("a=[x,y],b=[z]", ["a=[x,y]", "b=[z]"]),
        ("a=[x=1,y=2],b=3", ["a=[x=1,y=2]", "b=3"]),
        ("a=", ["a="]),
    ],
)
def test_settings_with_commas_between_them(word: str, pairs: list[str]) -> None:
    assert command._split(word) == pairs
