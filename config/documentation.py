"""Makes docs/configuration.md from the tables of keys, for scripts/generate-configuration-docs."""

from collections.abc import Iterable, Iterator

from config.broker_keys import SECTIONS
from config.definition import ConfigKey, UpdateMode, format_value
from config.dynamic import may_change
from config.topic_keys import TOPIC_KEYS

_HEAD = """\
# Configuration

This file is generated from the tables in `config/` by `scripts/generate-configuration-docs`;
change the tables instead.

`server.properties` has the syntax of `java.util.Properties`, as Kafka's has. A value can also be
given on the command line (`--override key=value`, repeatable), which wins over the file. Unknown
keys are accepted with a warning; a bad value ends the start with one line that names it.
A topic's own config (`kafka-configs`, `pykafkalog configs`) wins over the broker's.

In the column *effect*: **yes**: the broker follows it. **none yet**: the key is known and its value
is checked, so that a file written for Kafka is understood, but nothing in this broker reads it.
**own**: a key that Apache Kafka does not have.

Topic configs can be changed at any time. Broker keys with **running** in the column *changes* can
be set while the broker runs, for one broker or for all (`kafka-configs --entity-type brokers` with
`--entity-name 0` or `--entity-default`); what was set is kept in the metadata store and goes before
`server.properties`. *Kafka: per-broker* marks keys that Kafka lets change and this broker does not.
Log levels change with `--entity-type broker-loggers`, until the next start.
"""


def render() -> str:
    """Return the text of the file."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield "## Topic configs\n"
    yield "| config | type | default | valid | broker keys behind it | effect | meaning |"
    yield "|--|--|--|--|--|--|--|"
    for key in TOPIC_KEYS:
        synonyms = ", ".join(f"`{name}`" for name in key.synonyms) or "-"
        yield _row(_name(key), *_value_columns(key), synonyms, _effect(key), _cell(key.doc))
    for title, keys in SECTIONS:
        yield ""
        yield f"## Broker: {title}\n"
        yield from _broker_table(keys)


def _broker_table(keys: Iterable[ConfigKey]) -> Iterator[str]:
    yield "| key | type | default | valid | importance | changes | effect | meaning |"
    yield "|--|--|--|--|--|--|--|--|"
    for key in sorted(keys, key=lambda key: key.name):
        changes = "running" if may_change(key) else "no"
        if key.dynamic is UpdateMode.PER_BROKER:
            changes = f"no (Kafka: {key.dynamic.value})"
        yield _row(
            _name(key),
            *_value_columns(key),
            key.importance.value,
            changes,
            _effect(key),
            _cell(key.doc),
        )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _name(key: ConfigKey) -> str:
    return f"`{key.name}`"


def _value_columns(key: ConfigKey) -> tuple[str, str, str]:
    default = format_value(key.default)
    shown = f"`{_cell(default)}`" if default else "(empty)"
    valid = _cell(key.validator.text) if key.validator else "-"
    return key.type.name.lower(), shown, valid


def _effect(key: ConfigKey) -> str:
    if key.own:
        return "**own**"
    return "yes" if key.effective else "none yet"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")
