"""Templates for records."""

import pytest

from tools.errors import CommandError
from tools.records.record import Record
from tools.records.template import compile_template

RECORD = Record(
    topic="t",
    partition=3,
    offset=1234,
    timestamp=1_700_000_000_123,
    key="é".encode(),
    value=b"\xff\n",
    headers=(("a", b"1"), ("b", None), ("a", b"2")),
)


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("{topic}:{partition}:{offset}", b"t:3:1234\n"),
        ("{timestamp} {time}", b"1700000000123 2023-11-14T22:13:20.123Z\n"),
        ("{key} {value}", "é base64:/wo=\n".encode()),
        ("{value:raw}|{value:hex}|{value:base64}", b"\xff\n|ff0a|/wo=\n"),
        ("{value:json} {key:json}", '{"base64": "/wo="} "é"\n'.encode()),
        ("{headers} {header:a} {header:b:json} {header:c}", b"a=1,b=\\N,a=2 2 \\N \\N\n"),
        (r"a\tb\\{{{offset}}}", b"a\tb\\{1234}\n"),
        (r"{offset}\0", b"1234\0"),
        (r"{offset}\n", b"1234\n"),
        ("", b"\n"),
    ],
)
def test_fields_and_forms(template: str, line: bytes) -> None:
    assert compile_template(template)(RECORD) == line


def test_what_is_null_is_no_word() -> None:
    nothing = Record()
    assert compile_template("{key}{value:hex}")(nothing) == rb"\N\N" + b"\n"
    assert compile_template("{value} {value:json}", "-")(nothing) == b"- null\n"


@pytest.mark.parametrize("template", ["{keys}", "{key:big}", "{", "}", r"\x", "{offset:hex}", "{}"])
def test_what_is_no_template(template: str) -> None:
    with pytest.raises(CommandError, match="template"):
        compile_template(template)


@pytest.mark.parametrize("text", ["%k: %s", r"%o\n", "%%"])
def test_kcats_template_is_told_apart(text: str) -> None:
    with pytest.raises(CommandError, match="stand in braces"):
        compile_template(text)
