"""Every command of README.md, of docs/ and of `--help` is run as it stands.

A page is one scenario on a machine of its own (`tests.support.private_machine`): its commands in
their order, with a broker at localhost:9092 whose log.dirs is /tmp/kafka-logs. A new page needs
nothing here. `NOT_RUN` has a pattern with a reason for each command that cannot be run, and each
pattern must match a command.
"""

import argparse
import re
import shutil
from pathlib import Path

import pytest

from pykafkalog.commands import _pipeline
from tests.support import private_machine
from tests.support.documentation import Step, pages, says, steps_of_help, steps_of_page
from tests.support.installation import ROOT
from tests.support.reader_environment import make_reader_environment
from tools.__main__ import FurtherCommand, build_parser

NOT_RUN = {
    r"pip install": "installs from a registry; tests/integration/test_installed_wheel.py does it",
    r"scripts/(test|example-flights|pipeline-kills|simulate|fuzz|anomalies|compare-answers)":
        "hours of tests and shows, run by scripts/test or by hand",
    r"spark-1:7077|--host spark-1|s3a://|export SPARK_HOME": "a cluster of hosts, or a bucket;"
        " tests/integration/test_spark_cluster.py runs one on this machine",
    r"pushDownPredicate": "needs Spark 4.1: test_source_spark.py does it on the newest",
    r"pykafkalog-restore-": "a group that is named by what was restored when the page was written",
    r"schema-registry|schema_registry": "a schema registry",
    r"quotas --throttled": "a broker that serves metrics: test_tool_quotas.py has one",
    r"^pykafkalog users --add (?!.*--password-file)":
        "asks for a password: test_tool_users.py has one",
    r"transactions --abort": "a transaction that hangs: test_tool_transactions.py makes one",
    r"^(docker|podman) ": "a container runtime: scripts/try-image builds and tries the image",
}  # fmt: skip
"""Pattern -> reason."""
OUTSIDE = ("jq", "kcat", "curl", "prometheus", "grafana-server", "unzip")
"""Programs that a reader may have; their commands run on machines that have them."""
FAILS = {
    "fsck": 1,  # copies of a running broker's files: no clean stop was there
    "dump-log": 1,  # the same: indexes of active segments have their pre-sized length
    "acls --explain": 1,  # denied
}
"""Exit codes that are no failure of the page, by command."""
SPARK = re.compile(
    r"pykafkalog pipeline|pyspark|/tmp/lake|spark\.read|scripts/example|register\(spark\)"
)

pytestmark = pytest.mark.skipif(
    not private_machine.possible(), reason="namespaces (unshare) are not to be had here"
)


def why_not(command: str) -> str | None:
    """The reason not to run it, if there is one."""
    for pattern, reason in NOT_RUN.items():
        if re.search(pattern, command):
            return reason
    words = re.findall(r"(?:^|\| *)([\w-]+)", command)
    missing = [word for word in words if word in OUTSIDE and shutil.which(word) is None]
    return f"{missing[0]} is not installed" if missing else None


def run(
    steps: list[Step],
    directory: Path,
    *,
    single: bool = False,
    environment: Path = ROOT / ".venv",
) -> None:
    """Run them all, then complain of all that went wrong."""
    chosen = [step for step in steps if why_not(step.command) is None]
    if not chosen:
        pytest.skip("nothing to run here")
    commands = [step.command for step in chosen]
    listed = ["# each for itself"] * single + commands
    results = private_machine.run_alone(listed, directory, environment)
    wrong = []
    for step, done in zip(chosen, results, strict=True):
        allowed = {0, *(FAILS[name] for name in FAILS if f"pykafkalog {name}" in step.command)}
        if private_machine.STAYS.search(step.command):
            allowed.add(130)
        if done.code not in allowed or "Traceback" in done.printed:
            wrong.append(f"{step.source}: {step.command}\n[{done.code}] {done.printed[-1500:]}")
        elif step.printed is not None and not says(step.printed, done.printed):
            wrong.append(f"{step.source}: {step.command}\nprints\n{done.printed}")
    assert not wrong, "\n\n".join(wrong)


def steps_without_spark(page: Path) -> list[Step]:
    return [step for step in steps_of_page(page) if not SPARK.search(step.command)]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page(page: Path, tmp_path: Path) -> None:
    run(steps_without_spark(page), tmp_path)


@pytest.fixture(scope="module")
def with_spark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of a reader who has installed the pipeline."""
    return make_reader_environment(tmp_path_factory.mktemp("environment"))


SPARK_PAGES = [
    page for page in pages() if any(SPARK.search(step.command) for step in steps_of_page(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", SPARK_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_that_start_spark(
    page: Path, with_spark: Path, tmp_path: Path
) -> None:
    run(steps_of_page(page), tmp_path, environment=with_spark)


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Every command and subcommand."""
    further = FurtherCommand("pipeline", "", _pipeline)
    found: dict[str, argparse.ArgumentParser] = {}
    waiting = [build_parser([further], "pipeline")]
    while waiting:
        parser = waiting.pop(0)
        found[parser.prog] = parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
    return found


PARSERS = parsers()


def test_the_examples_of_all_commands(tmp_path: Path) -> None:
    steps = [
        step
        for prog, parser in PARSERS.items()
        if "pipeline" not in prog
        for step in steps_of_help(parser)
    ]
    assert len(steps) > 60
    run(steps, tmp_path, single=True)


@pytest.mark.slow
@pytest.mark.parametrize("prog", [prog for prog in PARSERS if "pipeline " in prog])
def test_the_examples_of_the_pipeline(prog: str, with_spark: Path, tmp_path: Path) -> None:
    run(steps_of_help(PARSERS[prog]), tmp_path, single=True, environment=with_spark)


def test_what_is_not_run_is_there_and_every_command_has_examples() -> None:
    commands = [step.command for page in pages() for step in steps_of_page(page)]
    for prog, parser in PARSERS.items():
        examples = steps_of_help(parser)
        commands += [step.command for step in examples]
        if prog not in ("pykafkalog", "pykafkalog pipeline"):
            shown = examples or steps_of_help(PARSERS[prog.rpartition(" ")[0]])
            assert any(prog in step.command for step in shown), f"{prog} --help has no examples"
    for pattern in NOT_RUN:
        assert any(re.search(pattern, command) for command in commands), pattern
