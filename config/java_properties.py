"""The text format of `java.util.Properties`, by the javaproperties package without its XML part.

Importing that package imports `xml.sax`, and with it `urllib.request`, `http.client` and `email`,
which takes a fifteenth of a broker's start. Its modules that read and write text need none of them,
so this module imports those without the package's `__init__`. Import it only when a file is read.
"""

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Final

_PACKAGE: Final = "javaproperties"


def _text_modules() -> tuple[ModuleType, ModuleType]:
    """Import the package's modules `reading` and `writing`, without its `__init__`.

    A later import of the package still gets all of it. Raises ModuleNotFoundError.
    """
    before = set(sys.modules)
    if _PACKAGE not in before:
        spec = find_spec(_PACKAGE)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {_PACKAGE!r}", name=_PACKAGE)
        sys.modules[_PACKAGE] = module_from_spec(spec)
    try:
        return import_module(f"{_PACKAGE}.reading"), import_module(f"{_PACKAGE}.writing")
    finally:
        for name in [n for n in sys.modules if n.split(".")[0] == _PACKAGE and n not in before]:
            del sys.modules[name]


_reading, _writing = _text_modules()

loads: Final = _reading.loads
"""Parse a text to a dict of keys and values."""
InvalidUEscapeError: Final = _reading.InvalidUEscapeError
"""Raised by `loads` for a `\\u` that is not followed by four hexadecimal digits."""
join_key_value: Final = _writing.join_key_value
"""Format a key and a value as one line, escaped."""
