"""What Spark's Python processes spend on the archives that they import from.

Spark hands its workers `pyspark.zip` and `py4j-….zip` on `PYTHONPATH`, and begins each task with
`importlib.invalidate_caches()` (`pyspark.worker_util.setup_spark_files`). Before Python 3.13 this
reads the whole directory of each archive again, in Python: 0.15 to 0.2 seconds of CPU for every
task, more than a task of 20 MB takes to read its records.
"""

import sys
from zipimport import zipimporter


def forget_archives() -> None:
    """Let the import system find archives anew when it next looks for a module.

    A finder that is not cached is not read again by `invalidate_caches`. Modules that are loaded
    stay; who imports another gets a new finder. Processes that read many tasks are spared the
    directories from their second task on.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)
