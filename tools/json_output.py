"""JSON on standard output: one document, or one object a line where a command tells of many things.

Numbers as they are, text as it is. On a terminal a document is spread over lines.
"""

import json
import sys
from typing import Any


def print_document(value: Any) -> None:
    """One JSON document, on one line where no person reads it."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(value, ensure_ascii=False, indent=indent))


def print_line(value: Any) -> None:
    """One of many objects; it is with the reader at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
