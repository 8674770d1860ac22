"""The start of Spark: its packages, its log, its path."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyspark

from pipeline import session
from pipeline.session import KAFKA, _why, packages_for


def test_the_log_has_a_name_that_nobody_can_foresee(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link of a predictable name would have led what is appended into another file."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    victim = tmp_path / "victim"
    victim.touch()
    (tmp_path / f"pykafkalog-stats-{os.getpid()}.log").symlink_to(victim)
    first, second = session._new_log("stats"), session._new_log("stats")
    assert first != second
    assert first.resolve() == first
    assert stat.S_IMODE(first.stat().st_mode) == 0o600


@pytest.mark.parametrize("named", [True, False])
def test_the_log_goes_with_the_process_unless_a_failure_has_named_it(
    named: bool, tmp_path: Path
) -> None:
    name = "session.log_of(Session())" if named else ""
    program = f"""
from pipeline import session
log = session._new_log("app")
class Session:
    class conf:
        get = lambda name: str(log)
{name}
print(log)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    log = Path(ran.stdout.strip())
    assert log.parent == tmp_path
    assert log.exists() is named


@pytest.mark.parametrize("before", [None, "", "x"])
def test_only_the_jvm_gets_the_safe_path(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    with session._safe_path():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ.get("PYTHONSAFEPATH") == before


@pytest.mark.parametrize("spark", ["4.0.0", "4.1.1", "4.2.0", "4.10.0"])
def test_packages_are_those_of_the_version_of_spark(spark: str) -> None:
    kafka, avro, iceberg, delta = packages_for(spark)
    assert kafka == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}"
    assert avro == f"org.apache.spark:spark-avro_2.13:{spark}"
    line = spark.rpartition(".")[0]
    assert f"iceberg-spark-runtime-{line}_2.13:" in iceberg
    assert line == "4.0" or f"delta-spark_{line}_2.13:" in delta
    assert KAFKA.endswith(f":{pyspark.__version__}")


def test_a_connector_that_there_is_not_is_one_sentence() -> None:
    said = (
        "x\n::          unresolved dependency: org.apache.spark#spark-sql-kafka;4.3.0: not found\n"
    )
    why = _why(RuntimeError("x"), said * 2, Path("/log"))
    assert why == (
        "cannot fetch org.apache.spark:spark-sql-kafka:4.3.0 from Maven Central: "
        f"there is no network, or there is none for Spark {pyspark.__version__} "
        "(there is for pyspark==4.0.0; log: /log)"
    )


def test_the_jvm_counts_times_in_utc_whatever_the_users_options_are() -> None:
    """In its own zone, the kafka source gives times before 1900 with other minutes."""
    user = {"spark.driver.extraJavaOptions": "-Xss4m"}
    settings = session._settings("app", "local[*]", (), user)
    for process in ("driver", "executor"):
        assert settings[f"spark.{process}.defaultJavaOptions"] == "-Duser.timezone=UTC"
    assert settings["spark.driver.extraJavaOptions"] == "-Xss4m"
