"""A Spark session whose output goes to a file.

A session runs in a JVM that prints Ivy's report, Spark's warnings and, later, stack traces of every
retry. The JVM would inherit the outputs of the process that starts it, so this module starts it
with a log file in their place; a terminal shows one line during the start. Every failure names the
file (`pipeline.failures`).

The JVM outlives its sessions, and the settings of its start (packages, memory) cannot be changed.
So a session with other settings gets a new JVM.
"""

import atexit
import contextlib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf, SparkContext, __version__
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from config.terminal import console, marked
from pipeline.errors import PipelineError


def packages_for(spark: str) -> tuple[str, str, str, str]:
    """Return the Maven names of kafka's connector, Avro, Iceberg and Delta for a version of Spark.

    docs/pipeline.md says which of them there are for which version.
    """
    line = spark[: spark.index(".", spark.index(".") + 1)]
    iceberg = "1.10.0" if line == "4.0" else "1.11.0"
    return (
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
        f"org.apache.spark:spark-avro_2.13:{spark}",
        f"org.apache.iceberg:iceberg-spark-runtime-{line}_2.13:{iceberg}",
        "io.delta:delta-spark_2.13:4.0.0"
        if line == "4.0"
        else f"io.delta:delta-spark_{line}_2.13:4.4.0",
    )


KAFKA, AVRO, ICEBERG, DELTA = packages_for(__version__)
"""For `packages`, for the installed version of Spark."""

COMPLETE: Final = "4.0.0"
"""A version of Spark for which all of these exist."""

LOG_FILE: Final = "spark.pykafkalog.log"
"""The session's setting that names its log file."""

_SAFE_PATH: Final = "PYTHONSAFEPATH"
_QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    f"spark.executorEnv.{_SAFE_PATH}": "1",
    # The kafka source goes through Java's calendar of the JVM's zone, where old times have other
    # minutes. Not `extraJavaOptions`: those are the user's.
    "spark.driver.defaultJavaOptions": "-Duser.timezone=UTC",
    "spark.executor.defaultJavaOptions": "-Duser.timezone=UTC",
}
_LOOPBACK: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_UNRESOLVED: Final = re.compile(r"^.*unresolved dependency: ([^:]+)#([^;]+);([^:\s]+)", re.M)

# Spark 4.2 says so on standard error at its start; pipelines hand it no frames of pandas.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)

_started_with: dict[str, str] = {}
"""The settings of the running JVM."""
_jvm_log: list[Path] = []
"""The log file of the running JVM."""
_named: set[Path] = set()
"""Log files that a failure has named."""


def start_session(
    app: str,
    *,
    master: str = "local[*]",
    packages: Sequence[str] = (KAFKA,),
    conf: Mapping[str, str] | None = None,
    log_file: Path | None = None,
    inherited: Sequence[int] = (),
) -> SparkSession:
    """Start a session, or return the running one if its settings are equal.

    `conf` overrides the settings made here. Output is appended to `log_file` (default: a file of
    this JVM in the directory for temporary files). `inherited` are file descriptors that the JVM
    keeps open too. A local master listens on the loopback interface only.

    Raises PipelineError if Java is missing, a package cannot be fetched, or the start fails.
    """
    settings = _settings(app, master, packages, conf or {})
    if SparkContext._active_spark_context is not None:
        running = SparkSession.builder.getOrCreate()
        if _started_with == settings:
            return running
        running.stop()
    if SparkContext._gateway is not None and _started_with != settings:
        end_jvm()
    if master.startswith("local"):
        # Python workers use this interpreter, not the first python3 on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    log = log_file or (_jvm_log[-1] if SparkContext._gateway and _jvm_log else _new_log(app))
    configuration = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        configuration.set(key, value)
    configuration.set(LOG_FILE, str(log))
    with _started(settings, log, master):
        if SparkContext._gateway is None:
            with log.open("ab") as out:
                options = {"stdout": out, "stderr": out, "pass_fds": tuple(inherited)}
                _jvm_log[:] = [log]
                with _safe_path():
                    gateway = launch_gateway(configuration, options)
            SparkContext._ensure_initialized(gateway=gateway)
        session = SparkSession.builder.config(conf=configuration).getOrCreate()
    _started_with.clear()
    _started_with.update(settings)
    return session


def _new_log(app: str) -> Path:
    """Make a log file, whose name nobody can foresee and have led elsewhere by a link.

    It goes with this process, unless a failure has named it.
    """
    descriptor, name = tempfile.mkstemp(prefix=f"pykafkalog-{app}-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    atexit.register(_remove, log, os.getpid())
    return log


def _remove(log: Path, owner: int) -> None:
    if log not in _named and os.getpid() == owner:
        log.unlink(missing_ok=True)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Let Python workers of a JVM that starts within import nothing from the current folder."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def log_of(session: SparkSession) -> Path:
    """Return the log file of the session's JVM, for a person: from now on it is kept."""
    log = Path(session.conf.get(LOG_FILE))
    _named.add(log)
    return log


def end_jvm() -> None:
    """End the JVM of this process, if there is one; the next session starts another."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    gateway.shutdown()
    if process is not None:
        process.stdin.close()  # it ends when its input does
        process.wait(60)
    SparkContext._gateway = None
    SparkContext._jvm = None
    _started_with.clear()


def _settings(
    app: str, master: str, packages: Sequence[str], conf: Mapping[str, str]
) -> dict[str, str]:
    settings = dict(_QUIET)
    if master.startswith("local"):
        settings |= _LOOPBACK
    wanted = [*packages, *filter(None, conf.get("spark.jars.packages", "").split(","))]
    settings |= conf
    settings |= {"spark.app.name": app, "spark.master": master}
    if wanted:
        settings["spark.jars.packages"] = ",".join(dict.fromkeys(wanted))
    return settings


@contextmanager
def _started(settings: Mapping[str, str], log: Path, master: str) -> Iterator[None]:
    """Show a line on a terminal while Spark starts within; turn a failure into PipelineError."""
    begin = log.stat().st_size if log.exists() else 0
    with _line(f"Spark starts ({master}; log: {log}) …"):
        try:
            yield
        except (PySparkRuntimeError, FileNotFoundError, OSError) as error:
            _named.add(log)
            raise PipelineError(_why(error, _tail(log, begin), log)) from error


def _tail(log: Path, begin: int) -> str:
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(begin)
        return file.read(2_000_000).decode(errors="replace")
    return ""


def _why(error: BaseException, said: str, log: Path) -> str:
    missing = _UNRESOLVED.findall(said)
    if missing:
        names = ", ".join(dict.fromkeys(":".join(parts) for parts in missing))
        return (
            f"cannot fetch {names} from Maven Central: there is no network, or there is none for"
            f" Spark {__version__} (there is for pyspark=={COMPLETE}; log: {log})"
        )
    if "JAVA_HOME is not set" in said or "java: command not found" in said:
        return "Spark needs Java 17 or newer, and there is no java on the path nor a JAVA_HOME"
    lines = [line for line in said.splitlines() if "Exception" in line or "Error" in line]
    reason = lines[-1].strip() if lines else str(error).splitlines()[0]
    return f"Spark did not start: {reason} (log: {log})"


@contextmanager
def _line(text: str) -> Iterator[None]:
    """Show a spinner with the text during the block, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(marked(text)):
        yield


def stop_session(session: Any) -> None:
    """Stop a session; it is no error if its JVM has ended already."""
    from py4j.protocol import Py4JError

    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        return
    with contextlib.suppress(Py4JError, OSError):
        session.stop()


def abandon_jvm() -> None:
    """Kill the JVM of this process, which after an interrupt may still answer the aborted call."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()
