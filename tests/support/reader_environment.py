"""The environment of a reader of the pipeline's pages: the wheel, Spark, and Spark's packages.

Built once for a run of the tests. The wheel lies in an environment of its own, so `pykafkalog.…` is
what a user imports; its dependencies come from the environment that runs the tests. Jars come
from Maven Central before the commands run, because they run without a network.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.support.built_wheel import build_wheel
from tests.support.private_machine import jars_of_this_home

_FETCH = """
from pykafkalog.pipeline.session import AVRO, DELTA, ICEBERG, KAFKA, start_session, stop_session
for packages in ((KAFKA,), (KAFKA, AVRO), (KAFKA, ICEBERG), (KAFKA, DELTA)):
    stop_session(start_session("fetch", master="local[1]", packages=packages))
"""


def make_reader_environment(directory: Path) -> Path:
    """A new environment in `directory`, an empty one. Raises AssertionError."""
    _run([sys.executable, "-m", "venv", "--without-pip", str(directory)])
    python = directory / "bin" / "python"
    wheel = build_wheel(directory)
    target = _run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    _run(
        [
            *(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"),
            *("--python", str(python), "install", "--no-deps", str(wheel)),
        ]
    )
    # A path that a .pth file adds is no site directory: the checkout's own .pth does not count.
    shared = Path(target.strip()) / "shared.pth"
    shared.write_text(f"{sysconfig.get_path('purelib')}\n")
    _run([str(python), "-P", "-c", _FETCH], PYSPARK_SUBMIT_ARGS=jars_of_this_home())
    return directory


def _run(command: list[str], **variables: str) -> str:
    # PYTHONPATH may show the checkout.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, env=environment
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
