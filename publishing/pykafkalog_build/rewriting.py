"""Rewrites the imports of one file: `storage.log` becomes `pykafkalog.storage.log`.

The statements are found in the syntax tree and changed in the bytes of the file. A change only adds
to a line, so all other bytes and all line numbers stay, and a traceback from an installation has
the line numbers of the repository.

    from storage.log import Log     from pykafkalog.storage.log import Log
    import storage                  import pykafkalog.storage as storage
    import storage.log as log       import pykafkalog.storage.log as log

`import storage.log` is refused: it binds `storage` and loads `storage.log`, and no single import of
`pykafkalog.storage.log` does both. Names of modules in strings are refused, too (`module_names`).

Afterwards the imports of the result are parsed and compared with the wanted ones, line by line; a
difference is refused. So a wrong byte position cannot go unnoticed.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from typing import Final

from pykafkalog_build.module_names import module_names
from pykafkalog_build.problems import CannotRewrite, Problem
from pykafkalog_build.rooms import Rooms

PACKAGE: Final = "pykafkalog"
_PREFIX: Final = f"{PACKAGE}."

_FROM: Final = re.compile(rb"from(?:[ \t\f]|\\\r?\n|\\\r)+")
"""Matches up to the first letter of the module's name."""

_STATEMENTS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of syntax nodes that hold statements."""

ImportStatement = ast.Import | ast.ImportFrom
Edit = tuple[int, str]
"""(byte offset in the file, text to insert there)."""


def rewrite(source: bytes, rooms: Rooms) -> bytes:
    """Return the file's source for a wheel. Raises CannotRewrite."""
    tree = _parse(source)
    imports = _imports(tree)
    problems = [*_unfaithful(imports, rooms), *module_names(tree, source, rooms)]
    if problems:
        raise CannotRewrite(sorted(problems))
    edits = sorted(_edits(imports, source, rooms), reverse=True)
    if not edits:
        return source
    result = source
    for offset, text in edits:
        result = result[:offset] + text.encode() + result[offset:]
    if [_meaning(node) for node in _imports(ast.parse(result))] != _wanted(imports, rooms):
        raise CannotRewrite([Problem(1, "its imports could not be rewritten; write them plainer")])
    return result


def _parse(source: bytes) -> ast.Module:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        tree = ast.parse(source)
    except SyntaxError as error:
        raise CannotRewrite([Problem(error.lineno or 1, f"is no Python: {error.msg}")]) from None
    if encoding != "utf-8":
        # The columns of a syntax tree count bytes of UTF-8 without a byte order mark.
        raise CannotRewrite([Problem(1, f"is encoded in {encoding}; save it as plain UTF-8")])
    return tree


def _imports(tree: ast.Module) -> list[ImportStatement]:
    """Return every import statement. Expressions cannot hold one and are not searched."""
    found: list[ImportStatement] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ImportStatement):
            found.append(node)
        for field in _STATEMENTS:
            waiting += getattr(node, field, ())
    return found


def _unfaithful(imports: Sequence[ImportStatement], rooms: Rooms) -> Iterator[Problem]:
    for node in imports:
        for name in node.names if isinstance(node, ast.Import) else ():
            if name.asname is None and "." in name.name and rooms.holds(name.name):
                room, _, rest = name.name.partition(".")
                above, _, last = name.name.rpartition(".")
                yield Problem(
                    node.lineno,
                    f"`import {name.name}` binds `{room}` and loads `{rest}`, which one import"
                    f" within {PACKAGE} cannot do; write `from {above} import {last}`",
                )


def _edits(imports: Sequence[ImportStatement], source: bytes, rooms: Rooms) -> Iterator[Edit]:
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node in imports:
        if isinstance(node, ast.ImportFrom):
            if _from_room(node, rooms):
                keyword = _FROM.match(source, begins[node.lineno - 1] + node.col_offset)
                assert keyword is not None, f"no `from` in line {node.lineno}"
                yield keyword.end(), _PREFIX
            continue
        for name in node.names:
            if rooms.holds(name.name):
                yield begins[name.lineno - 1] + name.col_offset, _PREFIX
                if name.asname is None:
                    assert name.end_lineno is not None and name.end_col_offset is not None
                    yield begins[name.end_lineno - 1] + name.end_col_offset, f" as {name.name}"


def _from_room(node: ast.ImportFrom, rooms: Rooms) -> bool:
    return node.level == 0 and rooms.holds(node.module or "")


def _meaning(node: ImportStatement) -> tuple[object, ...]:
    """Return the line and all names of an import statement, for comparison."""
    names = [(name.lineno, name.name, name.asname) for name in node.names]
    if isinstance(node, ast.Import):
        return node.lineno, names
    return node.lineno, node.level, node.module, names


def _wanted(imports: Sequence[ImportStatement], rooms: Rooms) -> list[tuple[object, ...]]:
    """Return the `_meaning`s that the result must have. Changes the statements."""
    for node in imports:
        if isinstance(node, ast.ImportFrom):
            if _from_room(node, rooms):
                node.module = f"{_PREFIX}{node.module}"
            continue
        for name in node.names:
            if rooms.holds(name.name):
                name.asname = name.asname or name.name
                name.name = _PREFIX + name.name
    return [_meaning(node) for node in imports]
