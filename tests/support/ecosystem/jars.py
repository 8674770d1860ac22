"""Java programs of the ecosystem, from Maven Central, each with its jars in a directory of its own.

What is fetched is said by `tests/ecosystem/jars/NAME.xml`, its version included. It stays in
`.cache/` of the checkout; another version is another directory.
"""

import re
import subprocess
from pathlib import Path
from typing import Final

from tests.support.installation import ROOT

PROJECTS: Final = ROOT / "tests/ecosystem/jars"
FETCH_TIMEOUT_S: Final = 600


def version_of(name: str) -> str:
    """Which version of the program is tried."""
    found = re.search(
        r"<program\.version>(.+?)</program\.version>", (PROJECTS / f"{name}.xml").read_text()
    )
    assert found is not None, f"{name}.xml names no version"
    return found[1]


def jars(name: str) -> str:
    """A classpath with the program; fetched when it is not there yet."""
    target = ROOT / ".cache" / "ecosystem" / f"{name}-{version_of(name)}"
    done = target / ".complete"
    if not done.exists():
        subprocess.run(
            [
                *("mvn", "-q", "-B", "-f", str(PROJECTS / f"{name}.xml")),
                "dependency:copy-dependencies",
                f"-DoutputDirectory={target}",
            ],
            check=True,
            timeout=FETCH_TIMEOUT_S,
        )
        done.touch()
    return f"{target}/*"


def compiled(source: Path, classpath: str, target: Path) -> str:
    """Compile one Java file into `target`; the classpath to start it with."""
    subprocess.run(
        ["javac", "-proc:none", "-cp", classpath, "-d", str(target), str(source)],
        check=True,
        timeout=120,
    )
    return f"{target}:{classpath}"
