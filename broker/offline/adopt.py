"""Registers what another broker wrote; `pykafkalog adopt` runs it while no broker runs.

    python -m broker.offline.adopt server.properties [--override property=value]* [--dry-run]

The metadata store belongs to the daemon, so the daemon's own package changes it. This program
prints one JSON object, which the tool shows:

    {"dry_run": false, "cluster_id": "…", "broker_id": 1, "log_dirs": […], "topics": [
      {"name": "t", "action": "adopted", "topic_id": "…", "partitions": 3, "found": [0, 1, 2],
       "missing": [], "config": {…}, "config_source": "KRaft metadata log", "dropped_configs": [],
       "reason": ""}, …],
     "access": {"rules": 12, "users": 2, "quotas": 1, "left_out": []},
     "start_refused": "Invalid value … for configuration zookeeper.connect: …" or null}

The program locks the directories while it runs. Exit code 0, or 1 with one line on standard error;
topics in conflict are part of the answer and no failure. A dry run writes only the lock files. If
one of `log.dirs` is neither a Kafka log directory nor empty, nothing is written at all.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from random import SystemRandom
from typing import Any

from broker.cluster.adoption import TopicVerdict, take_over
from broker.offline.opened_store import OPERATOR_ERRORS, opened_store
from broker.world.uuids import random_uuid
from config.broker_config import BrokerConfig, load_for_adoption
from config.definition import ConfigError
from config.properties import parse_override
from protocol.types import uuid_to_text
from storage.directory_kind import DirectoryKind, directory_kind
from storage.filesystem import FileSystem
from storage.waits import at_once


async def adopt(config: BrokerConfig, fs: FileSystem, *, dry_run: bool = False) -> dict[str, Any]:
    """Register topics that the metadata store lacks; return the module docstring's object.

    `main` adds "start_refused". Raises DirectoryLocked if a broker runs on the directories,
    MetadataStoreError, ConfigError, the errors of `settle_identity`, OSError.
    """
    _require_log_dirs(fs, config.log_dirs)
    new_uuid = partial(random_uuid, SystemRandom())
    async with opened_store(config, fs, new_uuid, dry_run=dry_run) as (store, identity):
        adoption = await take_over(
            store,
            fs,
            config.log_dirs,
            config,
            identity.broker_id,
            new_uuid=new_uuid,
            dry_run=dry_run,
        )
    return {
        "dry_run": dry_run,
        "cluster_id": identity.cluster_id,
        "broker_id": identity.broker_id,
        "log_dirs": list(config.log_dirs),
        "topics": [_as_json(verdict) for verdict in adoption.topics],
        "access": asdict(adoption.access),
    }


def _require_log_dirs(fs: FileSystem, paths: Sequence[str]) -> None:
    """Check `log.dirs` before anything is written; empty directories are allowed beside others.

    Raises ConfigError.
    """
    for path in paths:
        if not fs.is_dir(path):
            raise ConfigError(f"the log directory {path} does not exist")
    kinds = {path: directory_kind(fs, path) for path in paths}
    for path, kind in kinds.items():
        if kind not in (DirectoryKind.LOG_DIR, DirectoryKind.EMPTY):
            raise ConfigError(f"{path} is {kind.value}, so nothing was changed. Is log.dirs right?")
    if DirectoryKind.LOG_DIR not in kinds.values():
        raise ConfigError(f"{', '.join(paths)}: nothing to adopt there. Is log.dirs right?")


def _as_json(verdict: TopicVerdict) -> dict[str, Any]:
    topic = verdict.topic
    return {
        "name": verdict.name,
        "action": verdict.action.value,
        "topic_id": None if topic is None else uuid_to_text(topic.topic_id),
        "partitions": 0 if topic is None else len(topic.partitions),
        "found": list(verdict.found),
        "missing": list(verdict.missing),
        "config": {} if topic is None else dict(topic.config),
        "config_source": verdict.config_source.value,
        "dropped_configs": list(verdict.dropped_configs),
        "reason": verdict.reason,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    from storage.os_filesystem import OsFileSystem

    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.adopt", allow_abbrev=False)
    parser.add_argument("properties")
    parser.add_argument("--override", action="append", default=[], metavar="property=value")
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args(argv)
    try:
        overrides = dict(parse_override(text) for text in args.override)
        config, hindrance = load_for_adoption(args.properties, overrides)
        summary = at_once(adopt(config, OsFileSystem(), dry_run=args.dry_run))
    except OPERATOR_ERRORS as error:
        sys.stderr.write(f"{error}\n")
        return 1
    summary["start_refused"] = hindrance
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
