"""The partitions whose files a command reads, and their configs.

A target is a log directory, a partition directory, or a topic of a running broker. For a topic, the
broker gives the configs and the log directories, which must be on this machine. For a directory,
the configs come from the metadata beside the logs (`broker.offline.stored_configs`); the broker's
defaults come from `server.properties` if it is given. `--config` overrides all of them.
"""

import argparse
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import storage
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.dynamic import ConfigLayers
from config.properties import load_properties
from config.topic_config import TopicConfig
from protocol.errors import KafkaError
from storage.errors import CheckpointError, StorageError
from storage.explain.opened import LogOpener, OpenedLog, partitions_of
from storage.log_dir import LogDir
from storage.os_filesystem import OsFileSystem
from storage.paths import file_name, parent_dir, parse_partition_dir
from storage.reader import PartitionView
from tools.clock import WallClock
from tools.connection import (
    TIMEOUT_S,
    add_connection_arguments,
    admin_client,
    parse_settings,
    refusals_as_sentences,
)
from tools.daemon_module import answer_of
from tools.errors import CommandError
from tools.magnitudes import size_of


class Targets:
    """The partitions that the arguments name."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Raises CommandError."""
        self.clock = WallClock()
        self.notes: list[str] = []
        """Sentences for the user: where the configs came from, or that none were found."""
        self._fs = OsFileSystem()
        self._whatif = parse_settings(args.config)
        self._file = _properties(args.properties)
        self.broker = _parsed(self._file)
        self._own: dict[str, Mapping[str, str]] = {}
        self.found: list[PartitionView] = []
        directories = [target for target in args.target if _is_directory(target)]
        topics = [target for target in args.target if not _is_directory(target)]
        if directories:
            self._add_directories([str(Path(one).absolute()) for one in directories])
        if topics:
            self._add_topics(args, topics)
        self._opener = LogOpener(self._fs, self.clock, Random(), self.config_of)

    def config_of(self, topic: str) -> TopicConfig:
        """Return the configuration that applies to a topic. Raises CommandError."""
        own = {**self._own.get(topic, {}), **self._whatif}
        try:
            return TopicConfig.from_broker(self.broker, own)
        except ConfigError as error:
            raise CommandError(f"the configs of {topic}: {error}") from None

    def opened(self) -> Iterator[tuple[PartitionView, OpenedLog]]:
        """Yield each partition with its opened log. Raises CommandError."""
        for view in self.found:
            try:
                with _findings_quoted(view, "A restart would find", self._fs):
                    opened = self._opener.open(view)
                yield view, opened
            except PermissionError as error:
                raise CommandError(
                    f"no permission for {error.filename}: run it as the owner of the files"
                ) from None
            except (OSError, CheckpointError, StorageError) as error:
                raise CommandError(f"{view.directory}: {error}") from None

    @contextmanager
    def reading(self, view: PartitionView) -> Iterator[None]:
        """Read an opened partition inside, and have damaged indexes repaired in memory.

        Raises CommandError for damage that cannot be repaired.
        """
        try:
            with _findings_quoted(view, "A broker would find", self._fs):
                yield
        except (OSError, KafkaError) as error:
            where = "" if view.directory in str(error) else f"{view.directory}: "
            raise CommandError(f"{where}{error}; `pykafkalog fsck` tells more") from None

    # Directories.

    def _add_directories(self, paths: list[str]) -> None:
        log_dirs = []
        for path in paths:
            try:
                views = partitions_of(path, self._fs)
            except OSError as error:
                raise CommandError(f"{path}: {error.strerror}") from None
            if not views:
                raise CommandError(f"{path} holds no partitions; name a directory of log.dirs")
            self.found += views
            log_dir = parent_dir(path) if parse_partition_dir(file_name(path)) else path
            log_dirs.append(log_dir)
        log_dirs += [one for one in self._file_log_dirs() if one not in log_dirs]
        self._use_stored(log_dirs)

    def _file_log_dirs(self) -> tuple[str, ...]:
        # The metadata is in one of all log directories, which need not be the one that is named.
        return self.broker.log_dirs if self._file else ()

    def _use_stored(self, log_dirs: list[str]) -> None:
        stored = answer_of("stored_configs", *log_dirs)
        self._own |= stored["topics"]
        layers = ConfigLayers(file=self._file, cluster=stored["cluster"])
        self.broker = _parsed(layers.merged())
        if stored["sources"]:
            self.notes.append(f"Configs of topics: {', '.join(stored['sources'])}.")
        elif not self._whatif:
            self.notes.append(
                "No configs were found beside the logs: the defaults are shown. "
                "--config cleanup.policy=compact and the like tell what the topics have."
            )

    # Topics of a running broker.

    def _add_topics(self, args: argparse.Namespace, topics: list[str]) -> None:
        from confluent_kafka.admin import ConfigResource, ResourceType

        admin = admin_client(args)
        with refusals_as_sentences():
            cluster = admin.list_topics(timeout=TIMEOUT_S)
            for topic in topics:
                if topic not in cluster.topics:
                    raise CommandError(
                        f"{topic} is no directory here, and no topic of {args.bootstrap_server}"
                    )
            resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
            resources += [
                ConfigResource(ResourceType.BROKER, str(broker)) for broker in cluster.brokers
            ]
            told = {
                resource.name: {
                    name: entry.value
                    for name, entry in future.result(TIMEOUT_S).items()
                    if entry.value is not None and not entry.is_sensitive
                }
                for resource, future in admin.describe_configs(resources).items()
            }
        paths = []
        for broker in cluster.brokers:
            configs = told[str(broker)]
            paths += _words(configs.get("log.dirs") or configs.get("log.dir", ""))
        here = [path for path in paths if Path(path).is_dir()]
        for topic in topics:
            self._own[topic] = {
                name: value for name, value in told[topic].items() if name in _TOPIC_FIELDS
            }
            views = [
                PartitionView(f"{path}/{topic}-{number}", self._fs)
                for path in here
                for number in sorted(cluster.topics[topic].partitions)
                if Path(path, f"{topic}-{number}").is_dir()
            ]
            if not views:
                raise CommandError(
                    f"{topic} lies in {', '.join(paths)} of {args.bootstrap_server}, which is not "
                    "on this machine: run it there, or on a copy of the directory"
                )
            self.found += views


_TOPIC_FIELDS = frozenset(name.replace("_", ".") for name in TopicConfig.__dataclass_fields__)


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that `Targets` reads."""
    parser.add_argument(
        "target",
        nargs="+",
        metavar="DIR|TOPIC",
        help="a log directory, a partition's, or a topic of the broker at --bootstrap-server",
    )
    parser.add_argument(
        "--properties", metavar="FILE", help="server.properties of the broker of a DIR"
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="K=V",
        help="topic configs that go before those found: what would happen if?",
    )
    add_connection_arguments(parser)


def allocated(opened: OpenedLog) -> str:
    """The words for space that a log's active segment has allocated beforehand; "" if none."""
    return f", {size_of(opened.allocated)} more allocated" if opened.allocated else ""


@contextmanager
def _findings_quoted(view: PartitionView, whose: str, fs: OsFileSystem) -> Iterator[None]:
    """Attribute what the rehearsed repairs log to a broker, which alone would change files.

    If a broker uses the directory, nothing is printed: it leaves to its clean stop what a start
    would repair, and logs the rest itself.
    """
    try:
        in_use = LogDir(fs, parent_dir(view.directory)).is_in_use()
    except OSError:
        in_use = False
    handler = logging.NullHandler() if in_use else logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"{whose}: %(message)s"))
    logger = logging.getLogger(storage.__name__)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _is_directory(target: str) -> bool:
    return "/" in target or Path(target).is_dir()


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _properties(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return dict(load_properties(Path(path).read_text("iso-8859-1")))
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None


def _parsed(properties: Mapping[str, str]) -> BrokerConfig:
    try:
        return BrokerConfig.parse(dict(properties))
    except ConfigError as error:
        raise CommandError(f"--properties: {error}") from None


def describe(config: TopicConfig, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of the named configs, by Kafka's names."""
    found: dict[str, Any] = {}
    for name in names:
        value = getattr(config, name.replace(".", "_"))
        found[name] = ",".join(sorted(value)) if isinstance(value, frozenset) else value
    return found
