"""What connections to others need of this broker."""

from dataclasses import dataclass
from random import Random

from broker.deadlines import Deadlines
from broker.world.clock import TaskClock
from broker.world.driver import Driver
from broker.world.transport import Transport
from broker.world.workers import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSurroundings:
    """What connections need of this broker."""

    transport: Transport
    workers: Workers
    clock: TaskClock
    deadlines: Deadlines
    """They run while requests are asked: what is not answered in time is known by them."""
    driver: Driver
    random: Random
