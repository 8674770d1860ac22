"""Lists, adds and removes users with passwords; `pykafkalog users --offline` runs it.

    python -m broker.offline.users server.properties [--override property=value]*
        [--add NAME | --remove NAME] [--mechanism M]* [--iterations N]

So that the first user is there before the broker serves listeners that authenticate. The password
is standard input, as a JSON string. The broker must be stopped; directories that do not exist yet
are made, as its start does. Users of a cluster (`zookeeper.connect`) are in ZooKeeper: then no
directory is touched, and brokers may run. This program prints one JSON object:

    {"users": [{"name": "alice", "mechanisms": {"SCRAM-SHA-512": 4096}}, …],
     "start_refused": "Invalid value … for configuration zookeeper.connect: …" or null}

with all users, or the one that was named, and iterations by mechanism. Exit code 0, or 1 with one
line on standard error.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from random import SystemRandom
from typing import Any, TypeVar

from broker.cluster.adoption import take_over
from broker.cluster.metadata_store import MetadataStore
from broker.offline.opened_store import OPERATOR_ERRORS, opened_store
from broker.security.scram_credentials import (
    Credentials,
    change_credentials,
    describe,
    describe_all,
)
from broker.startup.directory_identity import refuse_member_alone
from broker.world.sqlite_medium import SqliteMedia
from broker.world.uuids import random_uuid
from config.broker_config import BrokerConfig, load_for_adoption
from config.definition import ConfigError
from config.properties import parse_override
from protocol.sasl.scram import (
    DEFAULT_ITERATIONS,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
    new_credential,
    random_text,
)
from storage.directory_kind import DirectoryKind, directory_kind
from storage.filesystem import FileSystem
from storage.waits import Work, at_once

T = TypeVar("T")


async def change_users(
    config: BrokerConfig, fs: FileSystem, args: argparse.Namespace, password: str
) -> list[dict[str, Any]]:
    """Do what the arguments say; return all users, or the one that they name.

    Raises ConfigError, and the errors of `opened_store`.
    """
    if config.zookeeper_connect:
        return await _change_in_cluster(config, args, password)
    if config.is_in_memory:
        raise ConfigError(
            f"log.dirs={','.join(config.log_dirs)} is memory of the broker's process, and ends with"
            " it: add users while the broker runs, or name a directory"
        )
    _make_log_dirs(fs, config.log_dirs)
    refuse_member_alone(fs, config.log_dirs, SqliteMedia.file_name)
    new_uuid = partial(random_uuid, SystemRandom())
    async with opened_store(config, fs, new_uuid) as (store, identity):
        if store.fresh:  # the broker will not do it then
            await take_over(
                store, fs, config.log_dirs, config, identity.broker_id, new_uuid=new_uuid
            )
        return await _change(store, args, password)


async def _change_in_cluster(
    config: BrokerConfig, args: argparse.Namespace, password: str
) -> list[dict[str, Any]]:
    import trio  # a broker that stands alone needs no loop for this

    from broker.zookeeper.settings import ZooKeeperSettings
    from broker.zookeeper.zookeeper_store import ZooKeeperStore

    soon = trio.lowlevel.current_trio_token().run_sync_soon
    store = await ZooKeeperStore.open(ZooKeeperSettings.of(config), soon)
    try:
        return await _change(store, args, password)
    finally:
        await store.close()


async def _change(
    store: MetadataStore, args: argparse.Namespace, password: str
) -> list[dict[str, Any]]:
    mechanisms = [ScramMechanism(name) for name in args.mechanism] or list(ScramMechanism)
    if args.add is not None:
        await _add(store, args.add, password, mechanisms, args.iterations)
    elif args.remove is not None:
        await _remove(store, args.remove, mechanisms)
    else:
        return [_as_json(*found) for found in sorted((await describe_all(store)).items())]
    user = args.add or args.remove
    return [_as_json(user, await describe(store, user))]


async def _add(
    store: MetadataStore,
    user: str,
    password: str,
    mechanisms: Sequence[ScramMechanism],
    iterations: int,
) -> None:
    if not user or not password:
        raise ConfigError("a user has a name and a password")
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise ConfigError(f"iterations are between {MIN_ITERATIONS} and {MAX_ITERATIONS}")
    for mechanism in mechanisms:
        salt = random_text(SystemRandom().getrandbits).encode()
        credential = new_credential(mechanism, password, salt, iterations)
        await change_credentials(store, {user: (mechanism, credential)})


async def _remove(store: MetadataStore, user: str, mechanisms: Sequence[ScramMechanism]) -> None:
    known = [one for one in mechanisms if one in await describe(store, user)]
    if not known:
        raise ConfigError(f"there is no user {user} with that mechanism")
    for mechanism in known:
        await change_credentials(store, {user: (mechanism, None)})


def _make_log_dirs(fs: FileSystem, paths: Sequence[str]) -> None:
    """Make what is missing. Raises ConfigError if there is something else, and OSError."""
    for path in paths:
        if not fs.exists(path):
            fs.make_dirs(path)
        kind = directory_kind(fs, path)
        if kind not in (DirectoryKind.LOG_DIR, DirectoryKind.EMPTY):
            raise ConfigError(f"{path} is {kind.value}, so nothing was changed. Is log.dirs right?")


def _as_json(name: str, credentials: Credentials) -> dict[str, Any]:
    iterations = {
        mechanism.value: credential.iterations for mechanism, credential in credentials.items()
    }
    return {"name": name, "mechanisms": iterations}


def _on_loop(work: Work[T]) -> T:
    import trio

    from broker.world.clock import SystemClock
    from broker.world.driver import Driver
    from broker.world.machine import MachineWorkers

    workers = MachineWorkers()
    try:
        return trio.run(Driver(workers, SystemClock()).run, work)
    finally:
        workers.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit code."""
    from storage.os_filesystem import OsFileSystem

    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.users", allow_abbrev=False)
    parser.add_argument("properties")
    parser.add_argument("--override", action="append", default=[], metavar="property=value")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--add", metavar="NAME")
    action.add_argument("--remove", metavar="NAME")
    names = [mechanism.value for mechanism in ScramMechanism]
    parser.add_argument("--mechanism", action="append", default=[], choices=names)
    parser.add_argument("--iterations", type=int, default=DEFAULT_ITERATIONS)
    args = parser.parse_args(argv)
    try:
        overrides = dict(parse_override(text) for text in args.override)
        config, hindrance = load_for_adoption(args.properties, overrides, in_cluster=True)
        password = "" if args.add is None else str(json.load(sys.stdin))
        work = change_users(config, OsFileSystem(), args, password)
        users = _on_loop(work) if config.zookeeper_connect else at_once(work)
    except OPERATOR_ERRORS as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps({"users": users, "start_refused": hindrance}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
