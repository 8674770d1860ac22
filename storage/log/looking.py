"""What a child process is asked: to look at batches that it reads itself.

Nothing of the broker is imported for it, so it starts quickly and stays small.
"""

from collections.abc import Callable
from typing import Any

from storage.log.results import SliceElsewhere


def look_at(batches: SliceElsewhere, look: Callable[..., Any], *values: Any) -> tuple[bool, Any]:
    """(True, what `look(bytes, *values)` returns), or (False, None): the file is gone.

    Raises OSError, and what `look` raises.
    """
    data = batches.read()
    return (False, None) if data is None else (True, look(data, *values))
