"""One of each: what a broker is made in."""

from dataclasses import dataclass
from random import Random

from broker.world.clock import Clock
from broker.world.descriptors import UNLIMITED, DescriptorBudget
from broker.world.metadata_medium import MetadataMedia
from broker.world.transport import Transport
from broker.world.workers import Workers
from storage.filesystem import FileSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Handed to `broker.server`, which hands each part what it needs and no more."""

    clock: Clock
    fs: FileSystem
    random: Random
    """Ids that nobody can guess on a machine, the same ones again from the same seed elsewhere."""
    transport: Transport
    media: MetadataMedia
    workers: Workers
    descriptors: DescriptorBudget = UNLIMITED
    """How many files and connections may be open."""
