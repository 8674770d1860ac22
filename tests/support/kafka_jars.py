"""Apache Kafka's own jars from Maven Central: the oracle of the conformance and integration tests.

They are fetched once per version into `.cache/` of the checkout. Tests that need them are marked
`integration` or `conformance`; without Java or Maven they fail with a line that says what to
install, they do not skip: a suite that quietly skips its oracle proves nothing.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = (ROOT / ".cache").resolve()
KAFKA_VERSION = "4.4.0"
PROJECTS = ROOT / "tests/conformance/jars"
FETCH_TIMEOUT_S = 1800
MAVEN = ("mvn", "-q", "-B", "-Dstyle.color=never")
TOOLS_VERSION = "4.3.1"
"""The newest release whose tools, Streams and Connect are in Maven Central."""


def kafka_jars(version: str = KAFKA_VERSION) -> str:
    """Return a Java classpath with Kafka `version` (broker, clients, tools if it has any)."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise RuntimeError(f"{program} is missing: install Java 17 and Maven to run this test")
    tools = ["-Ptools"] if tools_of(version) == version else []
    return fetched(f"kafka-{version}", PROJECTS / "pom.xml", f"-Dkafka.version={version}", *tools)


def fetched(name: str, project: Path, *options: str) -> str:
    """Return a classpath with the dependencies of a Maven project, which are fetched once."""
    target = CACHE / name
    done = target / ".complete"
    if not done.exists():
        subprocess.run(
            [
                *(*MAVEN, "-f", str(project), *options),
                *("dependency:copy-dependencies", f"-DoutputDirectory={target}"),
            ],
            check=True,
            timeout=FETCH_TIMEOUT_S,
        )
        done.touch()
    return f"{target}/*"


def shared_classes(version: str) -> tuple[str, ...]:
    """Return options of a JVM that takes Kafka's classes as they were after an earlier start.

    It starts in half the time. `tests.support.fetch` makes the archive; a JVM to which it does not
    fit goes without it.
    """
    archive = archive_of(version)
    if not archive.exists():
        return ()
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive_of(version: str) -> Path:
    """Return the file with the classes of `version`."""
    return CACHE / f"kafka-{version}.jsa"


def tools_of(version: str) -> str:
    """Return the release whose tools go with `version`."""
    return TOOLS_VERSION if version == KAFKA_VERSION else version


def compaction_tester_jars() -> str:
    """Return a Java classpath with `kafka.tools.LogCompactionTester`, of Kafka 3.9."""
    return fetched("kafka-compaction-tester", PROJECTS / "compaction_tester.xml")


def kafka_command(version: str, heap: str, options: Sequence[str], properties: Path) -> list[str]:
    """Return the words that start a broker; a short-lived JVM takes the shared classes."""
    shared = shared_classes(version) if options == SHORT_LIVED else ()
    return [
        *("java", f"-Xmx{heap}", f"-Xms{heap}", *LOGGING, *options, *shared),
        *("-cp", kafka_jars(version), "kafka.Kafka", str(properties)),
    ]


def java(
    main: str,
    *args: str,
    version: str = KAFKA_VERSION,
    stdin: str | None = None,
    timeout: float = 120,
    check: bool = True,
    options: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a Java class of Apache Kafka, or a Java source, to its end and return its output.

    Raises AssertionError with the output if it fails and `check` is set.
    """
    if main.startswith(TOOLS):
        version = tools_of(version)
    result = subprocess.run(
        [
            *("java", "-Xmx512m", *SHORT_LIVED, *(options or shared_classes(version)), *LOGGING),
            *("-cp", kafka_jars(version), main, *args),
        ],
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


TOOLS = ("org.apache.kafka.tools.", "kafka.admin.")
"""Packages of the tools, which call internals of the clients: they need those of their release."""

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options for a JVM that ends soon: it starts in half the time, without the optimizing compiler."""

LOGGING = (
    f"-Dlog4j2.configurationFile={ROOT / 'tests/support/log4j2.properties'}",
    f"-Djava.io.tmpdir={tempfile.gettempdir()}",  # a JVM does not look at TMPDIR
)
