"""A broker without TLS pays nothing for it, not even an import."""

import subprocess
import sys

from tests.support.installation import ROOT

PROGRAM = """
import sys
from tests.support.whole_broker import run_whole_broker

async def scenario(broker):
    await broker.create_topic("t")
    mine = {"cryptography", "jks", "tls", "broker.network.handshakes", "broker.world.tls_stream"}
    print(sorted(name for name in mine if name in sys.modules))

run_whole_broker(scenario)
"""


def test_without_a_listener_that_speaks_tls_nothing_of_it_is_imported() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"
