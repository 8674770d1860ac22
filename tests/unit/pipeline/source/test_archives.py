"""Finders of archives: gone from the import system's cache, and made again when they are needed."""

import importlib
import sys
import zipfile
from pathlib import Path
from zipimport import zipimporter

import pytest

from pipeline.source.archives import forget_archives
from pipeline.source.batch import NOTHING, LogPartition, read_partition
from pipeline.source.datasource import PyKafkaLogDataSource


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """On the path, with two modules, of which one is imported."""
    path = tmp_path / "library.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("first_of_archive.py", "what = 1")
        file.writestr("second_of_archive.py", "what = 2")
    monkeypatch.syspath_prepend(str(path))
    for name in ("first_of_archive", "second_of_archive"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert importlib.import_module("first_of_archive").what == 1
    assert str(path) in sys.path_importer_cache
    return str(path)


def test_an_archive_s_directory_is_not_read_again(archive: str) -> None:
    forget_archives()
    assert archive not in sys.path_importer_cache
    importlib.invalidate_caches()
    assert archive not in sys.path_importer_cache
    assert importlib.import_module("second_of_archive").what == 2


def test_other_finders_stay(archive: str) -> None:
    finders = sys.path_importer_cache.items()
    others = {path for path, finder in finders if not isinstance(finder, zipimporter)}
    forget_archives()
    assert archive not in others
    assert set(sys.path_importer_cache) == others


def test_whoever_reads_a_task_forgets_them(archive: str) -> None:
    read_partition(LogPartition(NOTHING), ["offset"])
    assert archive not in sys.path_importer_cache


@pytest.mark.parametrize("kind", ["reader", "streamReader"])
def test_whoever_plans_forgets_them(archive: str, kind: str, tmp_path: Path) -> None:
    source = PyKafkaLogDataSource({"log.dirs": str(tmp_path), "subscribe": "orders"})
    getattr(source, kind)(source.schema())
    assert archive not in sys.path_importer_cache
