"""Work of a child process on batches that it reads from the file itself.

This imports nothing of the broker, so the process starts quickly and stays small.
"""

from collections.abc import Callable
from typing import Any

from storage.log.results import SliceElsewhere


def look_at(batches: SliceElsewhere, look: Callable[..., Any], *values: Any) -> tuple[bool, Any]:
    """Return (True, the result of `look(bytes, *values)`), or (False, None) if the file is gone.

    Raises OSError, and what `look` raises.
    """
    data = batches.read()
    return (False, None) if data is None else (True, look(data, *values))
