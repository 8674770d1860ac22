"""Control characters are shown on a terminal, and only there."""

import io
import sys

import pytest

from config.terminal import console, marked, shown, shown_line, terminals_made_safe, unshown


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b]0;mine\x07", "^[]0;mine^G"),
        ("\x00\x1f\x7f", "^@^_^?"),
        ("a b~\xa0ü日", "a b~\xa0ü日"),
        ("\x80\x9b31m\x9f", "<U+0080><U+009B>31m<U+009F>"),
        (
            "\u202ecod.exe\u202c\u2066\u2069\u2028",
            "<U+202E>cod.exe<U+202C><U+2066><U+2069><U+2028>",
        ),
        (b"\xff\x80".decode(errors="surrogateescape") + "\ud800", "<FF><80><U+D800>"),
        ("\r", "^M"),
    ],
)
def test_controls_are_shown_as_less_shows_them(text: str, seen: str) -> None:
    assert shown(text) == shown_line(text) == seen


def test_lines_and_tabs_stay_but_within_a_line() -> None:
    assert shown("a\tb\n") == "a\tb\n"
    assert shown_line("a\tb\n") == "a^Ib^J"


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_all_that_is_printed_is_made_safe_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = FakeTerminal(), FakeTerminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with terminals_made_safe():
        print("a\x1b[2J")
        sys.stdout.writelines(["b\x9b\n", "c\n"])
        print("d\x07", file=sys.stderr)
        print("\x1b[2K", end="", file=unshown(sys.stdout))
        console().print(f"[red]{marked('[x]:key:' + chr(27))}[/]")
    assert (sys.stdout, sys.stderr) == (out, err)
    begin, _, coloured = out.getvalue().partition("\x1b[2K")
    assert begin == "a^[[2J\nb<U+009B>\nc\n"
    assert "[x]:key:^[" in coloured
    assert err.getvalue() == "d^G\n"


def test_a_pipe_gets_the_bytes_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8", write_through=True))
    with terminals_made_safe():
        print(b"\x1b\xff\xc2\x9b".decode(errors="surrogateescape"))
    assert raw.getvalue() == b"\x1b\xff\xc2\x9b\n"
