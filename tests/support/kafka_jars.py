"""Apache Kafka's own jars from Maven Central: the oracle of the conformance and integration tests.

They are fetched once per version into `.cache/` of the checkout. Tests that need them are marked
`integration` or `conformance`; without Java or Maven they fail with a line that says what to
install, they do not skip: a suite that quietly skips its oracle proves nothing.
"""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KAFKA_VERSION = "4.3.1"


def kafka_jars(version: str = KAFKA_VERSION) -> str:
    """Return a Java classpath with Apache Kafka `version` (broker, clients and tools)."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise RuntimeError(f"{program} is missing: install Java 17 and Maven to run this test")
    target = ROOT / ".cache" / f"kafka-{version}"
    done = target / ".complete"
    if not done.exists():
        subprocess.run(
            [
                *("mvn", "-q", "-B", "-f", str(ROOT / "tests/conformance/jars/pom.xml")),
                f"-Dkafka.version={version}",
                "dependency:copy-dependencies",
                f"-DoutputDirectory={target}",
            ],
            check=True,
        )
        done.touch()
    return f"{target}/*"


def compaction_tester_jars() -> str:
    """Return a Java classpath with `kafka.tools.LogCompactionTester`, of Kafka 3.9."""
    target = ROOT / ".cache" / "kafka-compaction-tester"
    done = target / ".complete"
    if not done.exists():
        subprocess.run(
            [
                *("mvn", "-q", "-B", "-f"),
                str(ROOT / "tests/conformance/jars/compaction_tester.xml"),
                "dependency:copy-dependencies",
                f"-DoutputDirectory={target}",
            ],
            check=True,
        )
        done.touch()
    return f"{target}/*"


def java(
    main: str,
    *args: str,
    version: str = KAFKA_VERSION,
    stdin: str | None = None,
    timeout: float = 120,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a Java class of Apache Kafka to its end and return its output.

    Raises AssertionError with the output if it fails and `check` is set.
    """
    result = subprocess.run(
        ["java", "-Xmx512m", *SHORT_LIVED, *LOGGING, "-cp", kafka_jars(version), main, *args],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if check and result.returncode != 0:
        raise AssertionError(
            f"{main} {args} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}"
        )
    return result


SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options for a JVM that ends soon: it starts in half the time, without the optimizing compiler."""

LOGGING = (f"-Dlog4j2.configurationFile={ROOT / 'tests/support/log4j2.properties'}",)
