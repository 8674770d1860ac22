"""The cleaner threads share the buffers; a broker that cleans nothing imports no numpy."""

import subprocess
import sys

import pytest

from broker.cleaner.settings import MOST_MAP_BYTES, CleanerSettings
from config.broker_config import BrokerConfig


@pytest.mark.parametrize(
    ("threads", "buffer", "map_bytes"),
    [(1, 134217728, 134217728), (3, 30_000_000, 10_000_000), (1, 5_000_000_000, MOST_MAP_BYTES)],
)
def test_s_cmp_3_the_buffers_are_shared_by_the_threads(
    threads: int, buffer: int, map_bytes: int
) -> None:
    config = BrokerConfig.parse(
        {
            "log.cleaner.threads": str(threads),
            "log.cleaner.dedupe.buffer.size": str(buffer),
            "log.cleaner.io.buffer.size": "600000",
            "log.cleaner.io.buffer.load.factor": "0.8",
        }
    )
    settings = CleanerSettings.from_config(config)
    assert settings.map_bytes == map_bytes
    assert settings.io_buffer_bytes == 600_000 // threads // 2
    assert settings.load_factor == 0.8


def test_a_broker_that_cleans_nothing_does_without_numpy() -> None:
    code = "import sys, broker.server; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
