"""Prints the configs that were set while brokers ran, from the files beside their logs.

    python -m broker.offline.stored_configs /disk1/kafka-logs [/disk2/kafka-logs]*

The output is one JSON object with the configs of all brokers, of each broker, and of topics:

    {"sources": ["/disk1/kafka-logs/metadata.sqlite"], "cluster": {"log.retention.ms": "60000"},
     "brokers": {"1": {}}, "topics": {"orders": {"cleanup.policy": "compact"}}}

The sources are this broker's own metadata stores or, if there is none, the metadata log of a KRaft
Kafka. A broker may be using them: a store is copied before it is read, and a metadata log only
grows. Tools (`pykafkalog explain-cleaner`) run this because they do not know the daemon's files.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from broker.cluster.kraft_log import read_kraft_metadata
from broker.cluster.metadata_store import MetadataStoreError
from broker.cluster.tree_values import BROKER_CONFIGS, TOPIC_CONFIGS, decode_config
from broker.world.metadata_medium import MediumError
from broker.world.sqlite_medium import SqliteMedia, SqliteMedium
from storage.filesystem import FileSystem
from storage.os_filesystem import OsFileSystem

_FOR_ALL = "<default>"


def stored_configs(log_dirs: Sequence[str], fs: FileSystem) -> dict[str, Any]:
    """Return the module docstring's object. Raises OSError, MediumError, MetadataStoreError."""
    found: dict[str, Any] = {"sources": [], "cluster": {}, "brokers": {}, "topics": {}}
    for log_dir in log_dirs:
        path = Path(log_dir) / SqliteMedia.file_name
        if path.is_file():
            _add_own(found, path)
    for log_dir in log_dirs if not found["sources"] else ():
        metadata = read_kraft_metadata(fs, log_dir)
        if metadata is not None:
            found["sources"].append(f"the KRaft metadata log in {log_dir}")
            found["topics"] |= metadata.configs
    return found


def _add_own(found: dict[str, Any], path: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, scratch)
        medium = SqliteMedium(str(Path(scratch) / path.name))
        try:
            rows = medium.load()
        finally:
            medium.close()
    found["sources"].append(str(path))
    for row in rows:
        kind, _, name = row.path.rpartition("/")
        if kind == TOPIC_CONFIGS:
            found["topics"][name] = decode_config(row.path, row.value)
        elif kind == BROKER_CONFIGS and name == _FOR_ALL:
            found["cluster"] = decode_config(row.path, row.value)
        elif kind == BROKER_CONFIGS:
            found["brokers"][name] = decode_config(row.path, row.value)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    try:
        found = stored_configs(sys.argv[1:] if argv is None else argv, OsFileSystem())
    except (OSError, MediumError, MetadataStoreError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
