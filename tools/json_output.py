"""JSON on standard output: one document, or an object per line if a command prints many things.

Numbers have no separators and text is not escaped to ASCII. On a terminal a document is indented.
"""

import json
import sys
from typing import Any


def print_document(value: Any) -> None:
    """Print one JSON document: indented on a terminal, else on one line."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(value, ensure_ascii=False, indent=indent))


def print_line(value: Any) -> None:
    """Print one of many objects on a line, and flush it."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
