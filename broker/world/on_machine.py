"""The world of a broker on a machine, and of one whose disk is memory (`log.dirs=memory:`)."""

import os
from random import SystemRandom
from typing import Final

from broker.world.clock import SystemClock
from broker.world.machine import MachineWorkers
from broker.world.process_limits import claim_descriptors
from broker.world.sockets import SocketTransport
from broker.world.sqlite_medium import SqliteMedia
from broker.world.web import MachineWeb
from broker.world.world import World
from config.broker_config import BrokerConfig
from storage.os_filesystem import OsFileSystem

SPARE_DESCRIPTORS: Final = 8
"""Descriptors held back for files that must be opened, for a moment, when none is left."""


def machine_world(config: BrokerConfig) -> World:
    """Real time, threads and sockets; the disk that `log.dirs` names."""
    clock = SystemClock()
    workers = MachineWorkers(dedicated_in_threads=config.is_in_memory)
    descriptors = claim_descriptors()
    processors = len(os.sched_getaffinity(0))
    transport = SocketTransport(ceiling=descriptors.ceiling)
    web = MachineWeb(clock)
    if not config.is_in_memory:
        return World(
            clock=clock,
            fs=OsFileSystem(spares=SPARE_DESCRIPTORS),
            random=SystemRandom(),
            transport=transport,
            media=SqliteMedia(),
            workers=workers,
            descriptors=descriptors,
            web=web,
            processors=processors,
        )
    from broker.world.journal_medium import JournalMedia
    from storage.memory_filesystem import MemoryFileSystem

    memory = MemoryFileSystem(
        clock.wall_ms, total_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    )
    return World(
        clock=clock,
        fs=memory,
        random=SystemRandom(),
        transport=transport,
        media=JournalMedia(memory),
        workers=workers,
        descriptors=descriptors,
        web=web,
        processors=processors,
    )
