"""How the Avro schema that values are read by grows with the schemas that they were written by.

Avro leaves out what the reader's schema does not have: fields of a record, and symbols of an enum
that has a default. `grown_avro` adds both to the reader's schema. A new field may be null, and is
null by default, because records of older schemas lack it. A field that the reader has and a writer
lacks stays, so a schema that went back and forth loses no column.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from pipeline.errors import PipelineError

_PRIMITIVE: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)


@dataclass(frozen=True, slots=True)
class AvroGrowth:
    """A reader's schema and what distinguishes it from the one before."""

    schema: str
    added: tuple[str, ...] = ()
    """Paths of new fields, and `path=SYMBOL` of new symbols."""
    refused: tuple[str, ...] = ()
    """Paths of fields that differ from another one in upper and lower case only."""


def grown_avro(reader: str, writer: str) -> AvroGrowth:
    """Return the reader's schema with what only the writer's has. Raises PipelineError."""
    merge = _Merge(_Schema(reader), _Schema(writer))
    merge.walk(merge.reader.root, merge.writer.root, "")
    if not merge.added:
        return AvroGrowth(reader, (), tuple(merge.refused))
    return AvroGrowth(merge.reader.text(), tuple(merge.added), tuple(merge.refused))


class _Schema:
    """A schema whose named types stand apart: within `root` and `names` they are full names."""

    def __init__(self, text: str) -> None:
        try:
            schema = json.loads(text)
        except ValueError:
            raise PipelineError("the Avro schema is no JSON") from None
        self.names: dict[str, dict[str, Any]] = {}
        self.root = self._apart(schema, "")

    def _apart(self, kind: Any, namespace: str) -> Any:
        if isinstance(kind, list):
            return [self._apart(one, namespace) for one in kind]
        if isinstance(kind, str):
            return kind if kind in _PRIMITIVE else _full(kind, namespace)
        what = kind.get("type")
        if what in ("record", "error", "enum", "fixed"):
            name = _full(kind["name"], kind.get("namespace", namespace))
            inner = name.rpartition(".")[0]
            self.names[name] = {key: kind[key] for key in kind if key not in ("name", "namespace")}
            if "fields" in kind:
                self.names[name]["fields"] = [
                    {**field, "type": self._apart(field["type"], inner)} for field in kind["fields"]
                ]
            return name
        for key in ("items", "values"):
            if what == {"items": "array", "values": "map"}[key]:
                return {**kind, key: self._apart(kind[key], namespace)}
        return kind if what in _PRIMITIVE else self._apart(what, namespace)

    def text(self) -> str:
        """Return the schema as JSON, each named type where it comes first."""
        return json.dumps(self._together(self.root, set()))

    def _together(self, kind: Any, done: set[str]) -> Any:
        if isinstance(kind, list):
            return [self._together(one, done) for one in kind]
        if isinstance(kind, dict):
            inner = {key: kind[key] for key in ("items", "values") if key in kind}
            return {**kind, **{key: self._together(one, done) for key, one in inner.items()}}
        if kind not in self.names or kind in done:
            return kind
        done.add(kind)
        namespace, _, name = kind.rpartition(".")
        whole = {"name": name, "namespace": namespace, **self.names[kind]}
        if "fields" in whole:
            whole["fields"] = [
                {**field, "type": self._together(field["type"], done)} for field in whole["fields"]
            ]
        return whole


class _Merge:
    def __init__(self, reader: _Schema, writer: _Schema) -> None:
        self.reader = reader
        self.writer = writer
        self.added: list[str] = []
        self.refused: list[str] = []
        self._seen: set[tuple[str, str]] = set()

    def walk(self, old: Any, new: Any, at: str) -> None:
        """Compare two types that stand at the same place."""
        if isinstance(new, list):
            for one in new:
                self.walk(old, one, at)
        elif isinstance(old, list):
            for one in old:
                if self._is_same(one, new):
                    self.walk(one, new, at)
                    return
        elif isinstance(old, str) and isinstance(new, str):
            if old in self.reader.names and new in self.writer.names:
                self._named(old, new, at)
        elif isinstance(old, dict) and isinstance(new, dict):
            for key in ("items", "values"):
                if key in old and key in new:
                    self.walk(old[key], new[key], at)

    def _is_same(self, old: Any, new: Any) -> bool:
        """Whether a branch of the reader's union is the one that the writer's type resolves to."""
        if isinstance(old, str) and isinstance(new, str):
            mine, other = self.reader.names.get(old), self.writer.names.get(new)
            if mine is None or other is None:
                return old == new
            return mine["type"] == other["type"] and _last(old) == _last(new)
        return isinstance(old, dict) and isinstance(new, dict) and old["type"] == new["type"]

    def _named(self, old: str, new: str, at: str) -> None:
        if (old, new) in self._seen:
            return
        self._seen.add((old, new))
        mine, other = self.reader.names[old], self.writer.names[new]
        if "symbols" in mine and "symbols" in other:
            more = [symbol for symbol in other["symbols"] if symbol not in mine["symbols"]]
            self.added += [f"{at.removesuffix('.')}={symbol}" for symbol in more]
            mine["symbols"] = [*mine["symbols"], *more]
        elif "fields" in mine and "fields" in other:
            self._fields(mine, other, at)

    def _fields(self, mine: dict[str, Any], other: dict[str, Any], at: str) -> None:
        known = {name: field for field in mine["fields"] for name in field.get("aliases", ())}
        known |= {field["name"]: field for field in mine["fields"]}
        lowered = {field["name"].lower() for field in mine["fields"]}
        fields = list(mine["fields"])
        for field in other["fields"]:
            name, path = field["name"], f"{at}{field['name']}"
            if name in known:
                self.walk(known[name]["type"], field["type"], f"{path}.")
            elif name.lower() in lowered:
                self.refused.append(path)
            elif field["type"] != "null":
                lowered.add(name.lower())
                self.added.append(path)
                fields.append({"name": name, "type": self._or_null(field["type"]), "default": None})
        mine["fields"] = fields

    def _or_null(self, kind: Any) -> Any:
        self._adopt(kind)
        kinds = kind if isinstance(kind, list) else [kind]
        return ["null", *(one for one in kinds if one != "null")]

    def _adopt(self, kind: Any) -> None:
        """Give the reader's schema the named types that a new field is made of."""
        if isinstance(kind, list):
            for one in kind:
                self._adopt(one)
        elif isinstance(kind, dict):
            self._adopt(kind.get("items", kind.get("values")))
        elif kind in self.writer.names:
            if kind in self.reader.names:
                self._named(kind, kind, f"{_last(kind)}.")
                return
            definition = dict(self.writer.names[kind])
            self.reader.names[kind] = definition
            for field in definition.get("fields", ()):
                self._adopt(field["type"])


def _full(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _last(name: str) -> str:
    return name.rpartition(".")[2]
