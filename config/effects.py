"""Finds settings that have no effect; the start logs them, so that no operator relies on them.

Kafka has some hundred keys for features that this broker does not have (yet). They are accepted so
that the broker starts on Kafka's `server.properties`; but a quota that is ignored silently would be
worse than an error.
"""

from collections.abc import Iterator
from typing import Final

from config.broker_config import LIMITS_OF_A_LISTENER, LISTENER_PREFIX, BrokerConfig
from config.broker_keys import BROKER_KEYS
from config.listener import Listener
from config.topic_keys import TOPIC_KEYS

_OF_A_MECHANISM: Final = frozenset(("sasl.jaas.config", "sasl.server.callback.handler.class"))
"""Keys that the broker reads with the prefix of a listener and a mechanism, and only so."""
_OF_SASL: Final = ("sasl.enabled.mechanisms", "sasl.server.max.receive.size")
"""Keys that the broker reads with the prefix of a listener that authenticates by SASL."""
_OF_TLS: Final = "ssl."
"""Keys that begin so have an effect where TLS is spoken, with the prefix of a listener as well."""

_MOST_SUGGESTIONS: Final = 50
_SIMILAR: Final = 0.75


def without_effect(config: BrokerConfig) -> list[str]:
    """Names that the operator set, that are known, and that change nothing in this broker."""
    return sorted(_without_effect(config))


def _without_effect(config: BrokerConfig) -> Iterator[str]:
    listeners = {listener.name.lower(): listener for listener in config.listeners}
    encrypted = any(listener.is_encrypted for listener in config.listeners)
    for name in config.originals:
        key = BROKER_KEYS.get(name)
        if key is not None:
            if (
                not key.effective
                or name in _OF_A_MECHANISM
                or (name.startswith(_OF_TLS) and not encrypted)
            ):
                yield name
        elif name not in config.unknown:
            listener, _, key_name = name[len(LISTENER_PREFIX) :].partition(".")
            if listener not in listeners or not _is_read(config, listeners[listener], key_name):
                yield name


def _is_read(config: BrokerConfig, listener: Listener, key: str) -> bool:
    """Whether the broker reads a key with this listener's prefix, or that of its mechanism."""
    if key.startswith(_OF_TLS):
        return listener.is_encrypted and BROKER_KEYS[key].effective
    if key in LIMITS_OF_A_LISTENER:
        return True
    sasl = config.sasl.get(listener.name)
    if sasl is None:
        return False
    mechanism, _, own = key.partition(".")
    if mechanism in (one.name.lower() for one in sasl.mechanisms):
        return own in _OF_A_MECHANISM or _may_be_of_mechanism(own)
    return key in _OF_SASL or _may_be_of_mechanism(key)


def _may_be_of_mechanism(key: str) -> bool:
    return key == "connections.max.reauth.ms" or (
        key.startswith("sasl.oauthbearer.") and BROKER_KEYS[key].effective
    )


def unknown_names(config: BrokerConfig) -> list[str]:
    """Return texts for the names that no table has, each with the most similar known name."""
    from difflib import get_close_matches  # imported only if a name is unknown

    known = [key.name for key in BROKER_KEYS]
    topic = {key.name for key in TOPIC_KEYS}
    told = []
    for count, name in enumerate(sorted(config.unknown)):
        near = get_close_matches(name, known, 1, _SIMILAR) if count < _MOST_SUGGESTIONS else []
        if name in topic:
            synonyms = TOPIC_KEYS[name].synonyms
            told.append(f"{name} (a topic's config: {synonyms[0] if synonyms else 'set it there'})")
        elif near:
            told.append(f"{name} (did you mean {near[0]}?)")
        else:
            told.append(name)
    return told
