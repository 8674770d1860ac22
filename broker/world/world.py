"""The value that holds all of a broker's surroundings."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from broker.world.clock import TaskClock
from broker.world.descriptors import UNLIMITED, DescriptorBudget
from broker.world.metadata_medium import MetadataMedia
from broker.world.transport import Transport
from broker.world.web import NO_WEB, Web
from broker.world.workers import Workers
from storage.filesystem import FileSystem
from storage.waits import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A broker's surroundings; `broker.server` hands each part only what that part needs."""

    clock: TaskClock
    fs: FileSystem
    random: Random
    """On a machine the system's random numbers, so that ids cannot be guessed; in simulations a
    seeded generator, which repeats them."""
    transport: Transport
    media: MetadataMedia
    workers: Workers
    descriptors: DescriptorBudget = UNLIMITED
    """The largest numbers of open files and connections."""
    web: Web = NO_WEB
    """Reads the keys of issuers of tokens."""
    processors: int = 1
    """How many processors the process may use."""
    open_tree: Callable[[Any], Work[Any]] | None = None
    """Opens the tree of a cluster, given the settings of ZooKeeper; None if ZooKeeper has it."""
