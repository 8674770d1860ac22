"""The metadata store of a broker that does not run, opened by a program that stands in for it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from broker.cluster.embedded_store import EmbeddedStore
from broker.startup import advice
from broker.startup.directory_identity import Identity, locate_store, settle_identity
from broker.world.metadata_medium import MetadataMedium, TransientMedium
from broker.world.sqlite_medium import SqliteMedia
from broker.world.uuids import NewUuid
from config.broker_config import BrokerConfig
from storage.filesystem import FileSystem
from storage.log_dir import LogDir

OPERATOR_ERRORS: Final = (*advice.OPERATOR_ERRORS, OSError)
"""The errors that end such a program with one line on standard error."""


@asynccontextmanager
async def opened_store(
    config: BrokerConfig, fs: FileSystem, new_uuid: NewUuid, *, dry_run: bool = False
) -> AsyncIterator[tuple[EmbeddedStore, Identity]]:
    """Lock the log directories, which exist, and open the store as the broker's start does.

    A dry run writes only the lock files. Raises DirectoryLocked if a broker runs on them,
    MetadataStoreError, the errors of `settle_identity`, OSError.
    """
    async with AsyncExitStack() as release:
        for path in config.log_dirs:
            log_dir = LogDir(fs, path)
            log_dir.lock()
            release.callback(log_dir.unlock)
        media = SqliteMedia()
        path = locate_store(fs, config.log_dirs, (), media.file_name)

        def open_medium(path: str) -> MetadataMedium:
            return TransientMedium() if dry_run and not fs.exists(path) else media.open(path)

        store = await EmbeddedStore.open(open_medium, path)
        release.push_async_callback(store.close)
        identity = await settle_identity(
            store, config, fs, config.log_dirs, new_uuid=new_uuid, record=not dry_run
        )
        yield store, identity
