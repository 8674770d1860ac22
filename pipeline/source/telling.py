"""Reports an error in a sentence, as far as Spark lets a source do so.

Spark puts the whole traceback of its Python process into the message of the error that a user sees.
It leaves that out of a process whose environment has a certain variable. A process ends with such
an error, so the variable concerns this one error only.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pipeline.source.options import BadOption
from storage.reader.scan import ScanError

_HIDES: Final = "SPARK_HIDE_TRACEBACK"
_IN_WORKERS_ONLY: Final = "pyspark.worker_util"


@contextmanager
def telling() -> Iterator[None]:
    """Let errors that a user can act on leave a Python process of Spark without a traceback."""
    try:
        yield
    except (BadOption, ScanError, OSError):
        if _IN_WORKERS_ONLY in sys.modules:
            os.environ[_HIDES] = "1"
        raise
