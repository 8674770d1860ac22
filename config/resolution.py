"""Resolves values that several keys give together: units, old names, directories, listeners.

The `resolve_…` functions write the resolved value back under the name that the rest of the broker
reads (`log.retention.ms` for all three units); the others return it. `values` are the parsed values
of all keys, `props` the texts that the operator set. Only `BrokerConfig.parse` uses this module.
"""

from collections.abc import Mapping
from typing import Any, Final

from config.definition import ConfigError, ConfigType, parse_value
from config.listener import Listener, parse_listeners, parse_protocol_map

_MINUTE_MS = 60 * 1000
_HOUR_MS = 60 * _MINUTE_MS

Values = dict[str, Any]


def resolve_broker_id(values: Values, props: Mapping[str, str]) -> None:
    """Set `broker.id` and `node.id`, its name in Kafka 4, to the same value.

    Raises ConfigError if both are given and differ.
    """
    if "node.id" not in props:
        values["node.id"] = values["broker.id"]
    elif "broker.id" not in props:
        values["broker.id"] = values["node.id"]
    elif values["node.id"] != values["broker.id"]:
        raise ConfigError("You must set `node.id` to the same value as `broker.id`.")


def resolve_times(values: Values, props: Mapping[str, str]) -> None:
    """Resolve times to milliseconds; a key in milliseconds wins over minutes, minutes over hours.

    S-RET-9.
    """
    if values["log.retention.ms"] is None:
        minutes = values["log.retention.minutes"]
        hours_ms = values["log.retention.hours"] * _HOUR_MS
        values["log.retention.ms"] = hours_ms if minutes is None else minutes * _MINUTE_MS
    if values["log.retention.ms"] < 0:
        values["log.retention.ms"] = -1
    if values["log.roll.ms"] is None:
        values["log.roll.ms"] = values["log.roll.hours"] * _HOUR_MS
    if values["log.roll.jitter.ms"] is None:
        values["log.roll.jitter.ms"] = values["log.roll.jitter.hours"] * _HOUR_MS
    if values["log.flush.interval.ms"] is None:
        values["log.flush.interval.ms"] = values["log.flush.scheduler.interval.ms"]
    if "log.message.timestamp.difference.max.ms" in props:
        for name in ("log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms"):
            if name not in props:
                values[name] = values["log.message.timestamp.difference.max.ms"]


IN_MEMORY = "memory:"
"""The prefix of log directories in memory; the rest of the text is a directory's name."""


def log_directories(values: Values) -> tuple[str, ...]:
    """Return `log.dirs`, or `log.dir` if that is not set.

    Raises ConfigError if none is named, one is named twice, or some are on disks and some in
    memory: a metadata store on disk would outlive topics in memory and bring them back empty.
    """
    directories: tuple[str, ...] | None = values["log.dirs"]
    if directories is None:
        directories = values["log.dir"]
    directories = tuple(path.rstrip("/") or path for path in directories if path)
    if not directories:
        raise ConfigError("At least one log directory must be defined via log.dirs or log.dir.")
    if len(set(directories)) != len(directories):
        raise ConfigError.invalid("log.dirs", directories, "List must not contain duplicates")
    if len({path.startswith(IN_MEMORY) for path in directories}) > 1:
        raise ConfigError.invalid(
            "log.dirs",
            directories,
            f"Directories in memory ({IN_MEMORY}...) and on disks cannot be mixed",
        )
    return directories


ALL: Final = "*"


def cordoned_directories(values: Values, directories: tuple[str, ...]) -> tuple[str, ...]:
    """Return `cordoned.log.dirs`, a subset of `directories` (KIP-1066). Raises ConfigError."""
    entries = tuple(path.rstrip("/") or path for path in values["cordoned.log.dirs"])
    if ALL in entries:
        if len(set(entries)) != 1:
            raise ConfigError(
                "When cordoned.log.dirs is set to *, it must not contain other values"
            )
        return directories
    missing = [path for path in entries if path not in directories]
    if missing:
        raise ConfigError(
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing "
            f"entries : {', '.join(missing)}"
        )
    return tuple(path for path in directories if path in entries)


def listener_endpoints(
    values: Values, props: Mapping[str, str]
) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
    """Return (listeners, advertised listeners); the second is empty if the operator set none.

    Listeners of a KRaft controller, which this process has not, are left out. Raises ConfigError.
    """
    protocols = parse_protocol_map(values["listener.security.protocol.map"])
    controllers = {name.upper() for name in values["controller.listener.names"]}
    if "listener.security.protocol.map" not in props:
        for name in controllers:
            protocols.setdefault(name, "PLAINTEXT")
    texts = values["listeners"]
    if "listeners" not in props and ("port" in props or "host.name" in props):
        texts = (f"PLAINTEXT://{_in_url(values['host.name'])}:{values['port']}",)
    listeners = parse_listeners("listeners", texts, protocols)
    if not listeners:
        raise ConfigError("listeners must contain at least one entry")
    told = values["advertised.listeners"] or ()
    old_host, old_port = values["advertised.host.name"], values["advertised.port"]
    if not told and (old_host is not None or old_port is not None):
        host = values["host.name"] if old_host is None else old_host
        told = (f"PLAINTEXT://{_in_url(host)}:{old_port or listeners[0].port}",)
    advertised = parse_listeners("advertised.listeners", told, protocols, same_port=True)
    return (
        tuple(listener for listener in listeners if listener.name not in controllers),
        tuple(listener for listener in advertised if listener.name not in controllers),
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def inter_broker_listener_name(values: Values, props: Mapping[str, str]) -> str:
    """Return the name of the listener between brokers. Raises ConfigError if both keys are set."""
    name: str | None = values["inter.broker.listener.name"]
    if name is None:
        return str(values["security.inter.broker.protocol"])
    if "security.inter.broker.protocol" in props:
        raise ConfigError(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol "
            "should be set."
        )
    return name.upper()


def ip_overrides(text: str) -> dict[str, int]:
    """Parse `max.connections.per.ip.overrides`: host or address to limit. Raises ConfigError."""
    result: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, limit = entry.rpartition(":")
        if not host or limit.strip().startswith("-"):
            raise ConfigError.invalid(
                "max.connections.per.ip.overrides", text, f"entries are host:limit; found {entry}"
            )
        number = parse_value("max.connections.per.ip.overrides", ConfigType.INT, limit)
        result[host.strip().strip("[]")] = number
    return result


def super_users(text: str) -> frozenset[str]:
    """Parse `super.users`: principals, separated by semicolons. Raises ConfigError."""
    principals = frozenset(filter(None, (part.strip() for part in text.split(";"))))
    for principal in sorted(principals):
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise ConfigError.invalid(
                "super.users",
                text,
                f"expected a string in format principalType:principalName but got {principal}",
            )
    return principals
