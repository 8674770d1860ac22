"""Which Python Spark's workers run, once the source is registered."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.source import PyKafkaLogDataSource, register


def session(context: Any) -> Any:
    registered: list[type] = []
    return SimpleNamespace(
        _sc=context,
        dataSource=SimpleNamespace(register=registered.append),
        conf=SimpleNamespace(set=lambda _name, _value: None),
        registered=registered,
    )


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return monkeypatch


@pytest.mark.parametrize("master", ["local", "local[*]", "local-cluster[2,1,1024]"])
@pytest.mark.usefixtures("unset")
def test_local_workers_run_this_python(master: str) -> None:
    spark = session(SimpleNamespace(master=master, pythonExec="python3-of-the-path"))
    register(spark)
    assert spark._sc.pythonExec == sys.executable
    assert spark.registered == [PyKafkaLogDataSource]


def test_a_python_that_cannot_import_the_source_is_named(unset: pytest.MonkeyPatch) -> None:
    unset.setenv("PYSPARK_PYTHON", "/no/python")
    spark = session(SimpleNamespace(master="local", pythonExec="/no/python"))
    with pytest.raises(RuntimeError, match=r"run /no/python, which .*PYSPARK_PYTHON.*"):
        register(spark)
    assert not spark.registered


@pytest.mark.usefixtures("unset")
def test_the_python_of_a_cluster_is_asked_for_the_source(tmp_path: Path) -> None:
    """Its path means nothing there, so it is not set to this one's."""
    without = tmp_path / "python3"
    without.write_text(f"#!{shutil.which('sh')}\necho \"No module named 'x'\" >&2\nexit 1\n")
    without.chmod(0o755)
    context = SimpleNamespace(master="spark://host:7077", pythonExec=str(without))
    with pytest.raises(RuntimeError, match="No module named 'x'"):
        register(session(context))
    context.pythonExec = shutil.which("true")
    register(session(context))
    assert context.pythonExec == shutil.which("true")


def test_with_spark_connect_the_server_chooses() -> None:
    spark = session(None)
    register(spark)
    assert spark.registered == [PyKafkaLogDataSource]
