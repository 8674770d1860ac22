"""The words that start `JavaClient.java`, which is compiled at its first use."""

import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.kafka_jars import CACHE, LOGGING, SHORT_LIVED, kafka_jars

SOURCE: Final = Path(__file__).with_name("JavaClient.java")
VERSION: Final = "3.9.0"
"""The version of the client library."""


@cache
def command() -> tuple[str, ...]:
    """Return the words without the job."""
    classpath = f"{_classes()}:{kafka_jars(VERSION)}"
    return ("java", "-Xmx128m", *SHORT_LIVED, *LOGGING, "-cp", classpath, "JavaClient")


def _classes() -> Path:
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    made = CACHE / f"java-client-{digest}"
    if not made.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as directory:
            classes = Path(directory) / "classes"
            words = ["javac", "-cp", kafka_jars(VERSION), "-d", str(classes), str(SOURCE)]
            subprocess.run(words, check=True)
            shutil.move(classes, made)
    return made
