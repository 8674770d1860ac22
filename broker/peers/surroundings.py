"""The parts of this broker that connections to others need."""

from dataclasses import dataclass
from random import Random

from broker.deadlines import Deadlines
from broker.world.clock import TaskClock
from broker.world.driver import Driver
from broker.world.transport import Transport
from broker.world.workers import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSurroundings:
    """The parts of this broker that connections need."""

    transport: Transport
    workers: Workers
    clock: TaskClock
    deadlines: Deadlines
    """They must run while requests are under way, because their timers end late requests."""
    driver: Driver
    random: Random
