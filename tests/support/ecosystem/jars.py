"""Java programs of the ecosystem, from Maven Central, each with its jars in a directory of its own.

`tests/ecosystem/jars/NAME.xml` says what is fetched, with its version. The jars stay in `.cache/`
of the checkout; another version gets another directory.
"""

import re
import subprocess
from pathlib import Path
from typing import Final

from tests.support.installation import ROOT
from tests.support.kafka_jars import fetched

PROJECTS: Final = ROOT / "tests/ecosystem/jars"


def version_of(name: str) -> str:
    """Return the version of the program that is tried."""
    found = re.search(
        r"<program\.version>(.+?)</program\.version>", (PROJECTS / f"{name}.xml").read_text()
    )
    assert found is not None, f"{name}.xml names no version"
    return found[1]


def jars(name: str) -> str:
    """Return a classpath with the program; fetch it if it does not exist yet."""
    return fetched(f"ecosystem/{name}-{version_of(name)}", PROJECTS / f"{name}.xml")


def compiled(source: Path, classpath: str, target: Path) -> str:
    """Compile one Java file into `target`; return the classpath to start it with."""
    subprocess.run(
        ["javac", "-proc:none", "-cp", classpath, "-d", str(target), str(source)],
        check=True,
        timeout=120,
    )
    return f"{target}:{classpath}"
