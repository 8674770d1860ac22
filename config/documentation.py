"""Makes docs/configuration.md from the tables of keys, for scripts/generate-configuration-docs."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import filterfalse

from config.broker_keys import SECTIONS
from config.definition import ConfigKey, UpdateMode, format_value
from config.dynamic import may_change
from config.security_keys import STORE_KEYS
from config.topic_keys import TOPIC_KEYS

_HEAD = """\
# Configuration

This file is generated from the tables in `config/` by `scripts/generate-configuration-docs`;
change the tables instead.

`server.properties` has the syntax of `java.util.Properties`, as Kafka's has. A value can also be
given on the command line (`--override key=value`, repeatable), which wins over the file. Unknown
keys are accepted with a warning; a bad value ends the start with one line that names it.
A topic's own config (`kafka-configs`, `pykafkalog configs`) wins over the broker's.

The broker follows the settings of the first tables; those marked **own** are not Kafka's. The
settings at the end are known, and their values are checked, so that a file written for Kafka is
understood, but [nothing reads them yet](#without-effect-yet).

Topic configs can be changed at any time. Broker keys with **running** in the column *changes* can
be set while the broker runs, for one broker or for all (`kafka-configs --entity-type brokers` with
`--entity-name` and its id, or `--entity-default`); what was set is kept in the metadata store and
goes before `server.properties`. Stores of keys are **running, of a listener**: for one broker, with
`listener.name.<name>.` before the key. *Kafka: per-broker* marks keys that Kafka lets change and
this broker does not. Log levels change with `--entity-type broker-loggers`, until the next start.
"""


def render() -> str:
    """Return the text of the file."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield from _table(
        "## Topic configs",
        ("config", "type", "default", "valid", "broker keys behind it", "meaning"),
        map(_topic_row, filter(_has_effect, TOPIC_KEYS)),
    )
    for title, keys in SECTIONS:
        yield from _table(
            f"\n## Broker: {title}",
            ("key", "type", "default", "valid", "importance", "changes", "meaning"),
            map(_broker_row, filter(_has_effect, _by_name(keys))),
        )
    yield "\n## Without effect yet"
    every: Sequence[tuple[str, Iterable[ConfigKey]]] = (("Topic configs", TOPIC_KEYS), *SECTIONS)
    for title, known in every:
        yield from _table(
            f"\n### {title}",
            ("key", "type", "default", "meaning"),
            map(_inert_row, filterfalse(_has_effect, _by_name(known))),
        )


def _has_effect(key: ConfigKey) -> bool:
    return key.effective or key.own


def _by_name(keys: Iterable[ConfigKey]) -> list[ConfigKey]:
    return sorted(keys, key=lambda key: key.name)


def _table(heading: str, columns: Sequence[str], rows: Iterable[str]) -> Iterator[str]:
    """Nothing if there are no rows."""
    listed = list(rows)
    if listed:
        yield f"{heading}\n"
        yield _row(*columns)
        yield f"|{'--|' * len(columns)}"
        yield from listed


def _topic_row(key: ConfigKey) -> str:
    synonyms = ", ".join(f"`{name}`" for name in key.synonyms) or "-"
    return _row(_name(key), *_value_columns(key), synonyms, _meaning(key))


def _broker_row(key: ConfigKey) -> str:
    changes = "running" if may_change(key) else "no"
    if key.name in STORE_KEYS:
        changes = "running, of a listener"
    elif key.dynamic is UpdateMode.PER_BROKER:
        changes = f"no (Kafka: {key.dynamic.value})"
    return _row(_name(key), *_value_columns(key), key.importance.value, changes, _meaning(key))


def _inert_row(key: ConfigKey) -> str:
    kind, default, _ = _value_columns(key)
    return _row(_name(key), kind, default, _meaning(key))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _name(key: ConfigKey) -> str:
    return f"`{key.name}`"


def _value_columns(key: ConfigKey) -> tuple[str, str, str]:
    default = format_value(key.default)
    shown = f"`{_cell(default)}`" if default else "(empty)"
    valid = _cell(key.validator.text) if key.validator else "-"
    return key.type.name.lower(), shown, valid


def _meaning(key: ConfigKey) -> str:
    return _cell(key.doc) if not key.own else f"**own** {_cell(key.doc)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")
