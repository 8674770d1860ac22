"""The world of a broker on a machine, and of one whose disk is memory (`log.dirs=memory:`)."""

import os
from random import SystemRandom
from typing import Final

from broker.world.clock import SystemClock
from broker.world.machine import MachineWorkers
from broker.world.metadata_medium import MetadataMedia
from broker.world.process_limits import claim_descriptors
from broker.world.sockets import SocketTransport
from broker.world.sqlite_medium import SqliteMedia
from broker.world.web import MachineWeb
from broker.world.world import World
from config.broker_config import BrokerConfig
from storage.clock import Clock
from storage.filesystem import FileSystem
from storage.os_filesystem import OsFileSystem

SPARE_DESCRIPTORS: Final = 8
"""Descriptors held back for files that must be opened, for a moment, when none is left."""


def machine_world(config: BrokerConfig) -> World:
    """Real time, threads and sockets; the disk that `log.dirs` names."""
    clock = SystemClock()
    descriptors = claim_descriptors()
    fs, media = _in_memory(clock) if config.is_in_memory else _on_disk()
    return World(
        clock=clock,
        fs=fs,
        random=SystemRandom(),
        transport=SocketTransport(ceiling=descriptors.ceiling),
        media=media,
        workers=MachineWorkers(dedicated_in_threads=config.is_in_memory),
        descriptors=descriptors,
        web=MachineWeb(clock),
        processors=len(os.sched_getaffinity(0)),
    )


def _on_disk() -> tuple[FileSystem, MetadataMedia]:
    return OsFileSystem(spares=SPARE_DESCRIPTORS), SqliteMedia()


def _in_memory(clock: Clock) -> tuple[FileSystem, MetadataMedia]:
    from broker.world.journal_medium import JournalMedia
    from storage.memory_filesystem import MemoryFileSystem

    memory = MemoryFileSystem(
        clock.wall_ms, total_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    )
    return memory, JournalMedia(memory)
