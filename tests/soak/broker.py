"""A broker that tells what it holds: `python -m tests.soak.broker server.properties FILE`.

At SIGUSR2 it notes what all its parts hold. At SIGUSR1 it writes to FILE what holds something else
now (an empty list if nothing does), and its descriptors, children and memory.
"""

import json
import os
import signal
import sys
from pathlib import Path

import trio

from broker.server import BrokerServer
from broker.world.on_machine import machine_world
from config.broker_config import load_broker_config
from tests.support.held import Held


def children() -> int:
    """Count the child processes."""
    task = Path("/proc/self/task")
    return sum(len((thread / "children").read_text().split()) for thread in task.iterdir())


def descriptors() -> int:
    """Count descriptors except those of log files, which stay open while the limit allows."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            leads_to = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # that of the listing
            continue
        found += not leads_to.startswith("/") or leads_to.endswith("(deleted)")
    return found


def megabytes() -> int:
    """Return the resident memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


async def live(properties: str, file: Path) -> bool:
    config = load_broker_config(properties, {})
    server = BrokerServer(
        config, machine_world(config), announce=lambda bound: print("Listening", flush=True)
    )

    async def obey() -> None:
        held = Held()
        signals = signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM
        with trio.open_signal_receiver(*signals) as received:
            async for number in received:
                if number == signal.SIGTERM:
                    server.request_shutdown()
                    continue
                if number == signal.SIGUSR2:
                    held = Held()
                    continue
                state = {
                    "changes": held.changes(),
                    "descriptors": descriptors(),
                    "children": children(),
                    "megabytes": megabytes(),
                    "connections": sum(
                        server.components.socket_server.statistics().connections.values()
                    ),
                }
                made = file.with_suffix(".new")
                made.write_text(json.dumps(state))
                made.rename(file)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(obey)
        went_well = await server.run()
        nursery.cancel_scope.cancel()
    return went_well


if __name__ == "__main__":
    sys.exit(0 if trio.run(live, sys.argv[1], Path(sys.argv[2])) else 1)
