"""Writes the stubs of protocol/messages, from which a type checker knows the declared messages.

    scripts/message-types

Writes `protocol/messages/<name>.pyi` beside each file of declarations. The declarations are the
source; tests/meta/test_message_types.py fails if a stub is not what this writes.

A stub has a class per group, with its fields and their types. The type checker makes the
constructor of these, because `Value` is a `dataclass_transform`: it takes every field by name only,
and a field as what is written to it (`protocol/schema/fields.pyi`).
"""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from protocol import schema
from protocol.schema import Api, Array, Group, V
from protocol.schema.declaration import Declaration

MESSAGES = Path(__file__).resolve().parents[1] / "protocol" / "messages"
PLAIN = {
    schema.Bool: "bool",
    schema.Bytes: "Blob",
    schema.Float64: "float",
    schema.Int8: "int",
    schema.Int16: "int",
    schema.Int32: "int",
    schema.Int64: "int",
    schema.Str: "str",
    schema.UInt16: "int",
    schema.UInt32: "int",
    schema.Uuid: "bytes",
}
HOMES = {
    "Api": "protocol.schema",
    "ArrayField": "protocol.schema.fields",
    "Blob": "protocol.schema.fields",
    "EncodedArrayField": "protocol.schema.fields",
    "Group": "protocol.schema",
    "Message": "protocol.schema",
    "NullableArrayField": "protocol.schema.fields",
    "RecordsField": "protocol.schema.fields",
    "Sequence": "collections.abc",
    "Sized": "collections.abc",
    "Value": "protocol.schema",
}


def stubs() -> Iterator[tuple[Path, str]]:
    """Path and content of each stub."""
    for path in sorted(MESSAGES.glob("*.py")):
        module = import_module(f"protocol.messages.{path.stem}")
        source = path.read_text()
        groups = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, Group) and re.search(rf"^{name} = ", source, re.MULTILINE)
        }
        if groups:
            yield path.with_suffix(".pyi"), stub(path.name, groups)


def stub(name: str, groups: dict[str, Group]) -> str:
    """The content of the stub for one file."""
    names = {group: variable for variable, group in groups.items()}
    parsed = set().union(*map(_inside, (one for one in names if one.name.endswith("Request"))))
    body = "\n\n".join(
        "\n".join(_class(group, names, group in parsed)) for group in groups.values()
    )
    used = sorted(set(re.findall(r"\w+", body)) & set(HOMES))
    imports: dict[str, list[str]] = {}
    for term in used:
        imports.setdefault(HOMES[term], []).append(term)
    first = "".join(
        f"from {home} import {', '.join(terms)}\n" + ("\n" if home == "collections.abc" else "")
        for home, terms in sorted(imports.items())
    )
    return f"# Written by scripts/message-types from {name}.\n\n{first}\n{body}\n"


def _inside(group: Group) -> set[Group]:
    """The group and all groups nested in it."""
    found = {group}
    for _, rule in group.fields:
        declaration = rule.declaration
        element = declaration.element if isinstance(declaration, Array) else declaration
        if isinstance(element, Group):
            found |= _inside(element)
    return found


def _class(group: Group, names: dict[Group, str], parsed: bool) -> Iterator[str]:
    kind = "Message, metaclass=Api" if isinstance(group, Api) else "Value, metaclass=Group"
    yield f"class {names[group]}({kind}):" + ("" if group.fields else " ...")
    for name, rule in group.fields:
        yield f"    {name}: {_type(rule, names, parsed)} = ..."


def _type(rule: V, names: dict[Group, str], parsed: bool) -> str:
    """Return the type of the field.

    parsed: the group belongs to a request, whose records are parsed to slices of a frame. The
    records of a response may be anything with a length.
    """
    nullable = bool(rule.nullable) or rule.default is None
    null = " | None" if nullable else ""
    declaration = rule.declaration
    if declaration is schema.Records:
        assert nullable, "records that are never null have no type yet"
        return "RecordsField" if parsed else "Sized | None"
    if not isinstance(declaration, Array):
        return _plain(declaration, names) + null
    element = _plain(declaration.element, names)
    if element in ("int", "bool", "float"):  # build_code packs slices of these arrays
        return f"Sequence[{element}]{null}"
    if declaration.may_be_encoded:
        assert not nullable, "a nullable array of encoded elements has no type yet"
        return f"EncodedArrayField[{element}]"
    return f"{'NullableArrayField' if nullable else 'ArrayField'}[{element}]"


def _plain(declaration: Declaration, names: dict[Group, str]) -> str:
    if isinstance(declaration, Group):
        return names[declaration]
    return PLAIN[declaration]


if __name__ == "__main__":
    for file, text in stubs():
        file.write_text(text)
