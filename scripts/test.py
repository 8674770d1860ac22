"""Runs the tests in stages; `scripts/test` makes their environment first."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.running import report
from tests.running.leftovers import Leftovers
from tests.running.stage import ROOT, Failure, Stage, StageResult
from tests.selection import LONG_MARKS, REAL_MARKS, SHORT_MARKS, SPARK_TESTS
from tests.support.installation import VARIABLE

RECORDS = ROOT / ".cache" / "tests"
NEWEST_SPARK = "4.2.0"
WORKERS = os.cpu_count() or 1

# Client libraries leave sockets to the garbage collector, which is no failure of this project.
THEIRS = (
    *("-W", "ignore::ResourceWarning"),
    *("-W", "ignore::pytest.PytestUnraisableExceptionWarning"),
)
BY_TEST = ("-n", str(WORKERS), "--dist", "worksteal")
BY_FILE = ("--dist", "loadfile", "--no-loadscope-reorder")
WAITING = ("-n", str(WORKERS * 2), *BY_FILE)
"""Tests that wait for other processes: more of them than processors run side by side."""

EPILOG = """\
stages of --long:
  compiled     the default suite on the compiled form of the hot modules
  properties   slow properties, crashes, the simulation
  clients      the other tests with real clients, Apache Kafka and ZooKeeper
  alone        what counts milliseconds or memory, and attacks: nothing runs beside it
  spark        the tests of Spark on its newest version (SPARK names another)
  pythons      the default suite on the other Pythons that are found, with newly drawn examples

Options that are not listed here go to pytest: scripts/test --quick -k recovery.

A test that fails is run once more, alone. If it fails again, the run has failed. If it passes, it
is listed as unsteady at the end; more than three unsteady tests are a failure of the run. The
outcomes of each stage, and the log lines of client libraries, are kept in .cache/tests.

Integration, conformance and ecosystem tests start brokers and the command line of an installed
wheel (tests/support/installation.py), which is made for each run. To run them on the checkout:
.venv/bin/python -m pytest -m integration tests/integration
"""


class Run:
    """The stages of one run, and what they share: the wheel and the words for pytest."""

    def __init__(self, words: Sequence[str], resources: ExitStack) -> None:
        self._words = words
        self._resources = resources
        self._wheel: Path | None = None

    def check(self) -> StageResult:
        """Check format, lint, types and import contracts."""
        return self._command("check", ["scripts/check"])

    def default(self) -> StageResult:
        """Run what needs no real client."""
        return self._stage("default", f"{SHORT_MARKS} and not {REAL_MARKS}", BY_TEST)

    def short_clients(self) -> list[StageResult]:
        """Run each claim of the README against real clients, on a wheel."""
        return self._on_wheel("clients", f"{SHORT_MARKS} and {REAL_MARKS}", WAITING)

    def compiled(self) -> StageResult:
        """Compile the hot modules and run the default suite on them."""
        made = self._command("compiled", ["scripts/compile"])
        if made.failed:
            return made
        # Those in tests/meta read the sources.
        words = ("-p", "tests.support.compiled_form", "--ignore", "tests/meta")
        return self._stage("compiled", f"{SHORT_MARKS} and not {REAL_MARKS}", BY_TEST, words)

    def properties(self) -> StageResult:
        """Run slow properties, crashes and the simulation."""
        return self._stage(
            "properties", f"{LONG_MARKS} and not {REAL_MARKS} and not alone", BY_TEST
        )

    def long_clients(self) -> list[StageResult]:
        """Run the other tests with real clients, on a wheel."""
        return self._on_wheel("clients", f"{LONG_MARKS} and {REAL_MARKS} and not alone", WAITING)

    def alone(self) -> list[StageResult]:
        """Run what other work would falsify, in one process."""
        return self._on_wheel("alone", f"{LONG_MARKS} and alone", ())

    def ecosystem(self) -> list[StageResult]:
        """Run the programs around a broker."""
        return self._on_wheel("ecosystem", "ecosystem", ())

    def spark(self) -> StageResult:
        """Run the tests of Spark on another version than .venv's.

        .venv has the oldest: only Spark 4.0 and 4.1 have all formats of tables, and what runs on
        the oldest interface of a source is what a newer one could break.
        """
        version = os.environ.get("SPARK", NEWEST_SPARK)
        made = self._command("spark", ["scripts/install-spark", version])
        if made.failed:
            return made
        python = ROOT / ".venvs" / f"spark-{version}" / "bin" / "python"
        fetched = self._command("spark", [str(python), "-m", "tests.support.fetch"])
        if fetched.failed:
            return fetched
        words = (*THEIRS, "-p", "no:cacheprovider", *SPARK_TESTS)
        workers = ("-n", str(WORKERS), *BY_FILE)
        return self._stage("spark", "not alone", workers, words, python=str(python))

    def pythons(self) -> list[StageResult]:
        """Run the default suite on the Pythons that are found, but not on that of .venv."""
        own = "{}.{}".format(*sys.version_info)
        return [self._python(v) for v in ("3.13", "3.12", "3.11") if v != own]

    def _python(self, version: str) -> StageResult:
        name = f"python-{version}"
        found = subprocess.run(
            ["scripts/find-python", version], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        if not found:
            print(f"Python {version}: not found, not tried", flush=True)
            return StageResult(name, 0)
        environment = ROOT / ".venvs" / version
        install = ["scripts/install", "dev,tools,spark,sql,example", str(environment)]
        made = self._command(name, install, PYTHON=found)
        if made.failed:
            return made
        words = ("-p", "no:cacheprovider", "--hypothesis-profile", "drawn")
        marks = f"{SHORT_MARKS} and not {REAL_MARKS}"
        return self._stage(name, marks, BY_TEST, words, python=str(environment / "bin/python"))

    def _stage(
        self,
        name: str,
        marks: str,
        side_by_side: Sequence[str],
        words: Sequence[str] = (),
        python: str = sys.executable,
        environment: dict[str, str] | None = None,
    ) -> StageResult:
        print(f"--- {name}", flush=True)
        return Stage(
            name=name,
            words=("-m", marks, *words, *self._words),
            side_by_side=side_by_side,
            python=python,
            environment=environment or {},
        ).run(RECORDS)

    def _on_wheel(self, name: str, marks: str, side_by_side: Sequence[str]) -> list[StageResult]:
        """Run tests whose brokers and commands are those of an installed wheel."""
        made: list[StageResult] = []
        if self._wheel is None:
            wheel = Path(self._resources.enter_context(tempfile.TemporaryDirectory()))
            wheel.chmod(0o755)  # A test starts a broker as another user.
            made = self._prepare(wheel)
            if any(result.failed for result in made):
                return made
            self._wheel = wheel
        environment = {VARIABLE: str(self._wheel)}
        return [*made, self._stage(name, marks, side_by_side, THEIRS, environment=environment)]

    def _prepare(self, wheel: Path) -> list[StageResult]:
        """Install the wheel, and fetch jars meanwhile: mypyc writes C in one thread."""
        with ThreadPoolExecutor() as pool:
            installed = pool.submit(self._command, "wheel", ["scripts/install-wheel", str(wheel)])
            fetched = self._command("fetch", [sys.executable, "-m", "tests.support.fetch"])
            return [installed.result(), fetched]

    def _command(self, name: str, command: Sequence[str], **environment: str) -> StageResult:
        """Run a command that is no run of pytest; it prints its own reasons."""
        print(f"--- {name}: {' '.join(command)}", flush=True)
        began = time.monotonic()
        variables = {**os.environ, **environment}
        code = subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode
        failed = (Failure(" ".join(command), f"exit code {code}"),) if code else ()
        return StageResult(name, time.monotonic() - began, failed=failed)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the stages that were chosen; the exit status is 1 if one of them failed."""
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description="Run format, types and import contracts, the default suite, and each claim of "
        "the README with real clients and Apache Kafka: what CI runs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="the default suite alone: no Java")
    which.add_argument(
        "--long",
        nargs="*",
        metavar="STAGE",
        help="what scripts/test leaves out, or these stages of it",
    )
    which.add_argument("--compiled", action="store_true", help="the same as --long compiled")
    which.add_argument(
        "--ecosystem", action="store_true", help="Kafka Connect, Flink and other programs"
    )
    options, words = parser.parse_known_args(argv)

    leftovers = Leftovers()
    os.environ.update(leftovers.environment)
    tempfile.tempdir = None  # it is found anew
    shutil.rmtree(RECORDS, ignore_errors=True)
    RECORDS.mkdir(parents=True)
    results: list[StageResult] = []
    with ExitStack() as resources:
        run = Run(words, resources)
        long: dict[str, Callable[[], StageResult | list[StageResult]]] = {
            "compiled": run.compiled,
            "properties": run.properties,
            "clients": run.long_clients,
            "alone": run.alone,
            "spark": run.spark,
            "pythons": run.pythons,
        }
        if options.quick:
            stages = [run.default]
        elif options.compiled:
            stages = [run.compiled]
        elif options.ecosystem:
            stages = [run.ecosystem]
        elif options.long is not None:
            if unknown := set(options.long) - set(long):
                parser.error(f"no stage of --long: {', '.join(sorted(unknown))}")
            stages = [long[name] for name in options.long or long]
        else:
            stages = [run.check, run.default, run.short_clients]
        for stage in stages:
            result = stage()
            results += result if isinstance(result, list) else [result]
    began = time.monotonic()
    left = leftovers.collect()
    results.append(StageResult("leftovers", time.monotonic() - began, failed=left))
    told = report.text(results)
    (RECORDS / "report.txt").write_text(told + "\n")
    print(told, flush=True)
    return 1 if report.has_failed(results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
