import pytest

from protocol.sasl import LONGEST, MalformedMessage
from protocol.sasl.plain import PlainMessage, build_plain, parse_plain


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0tim\0tanstaaftanstaaf", PlainMessage("", "tim", "tanstaaftanstaaf")),
        (b"Ursel\0Kurt\0xipj3plmq", PlainMessage("Ursel", "Kurt", "xipj3plmq")),
        ("\0ü\0é€".encode(), PlainMessage("", "ü", "é€")),
        (b"\0\xff\0x", PlainMessage("", "�", "x")),
    ],
)
def test_the_examples_of_rfc_4616_and_utf_8(data: bytes, message: PlainMessage) -> None:
    assert parse_plain(data) == message


def test_what_is_built_is_parsed() -> None:
    assert parse_plain(build_plain("ann", "p,=w")) == PlainMessage("", "ann", "p,=w")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0pw", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0a\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (bytes(LONGEST + 1), "Invalid SASL/PLAIN response: 16385 bytes are too long"),
    ],
)
def test_errors_have_the_words_of_kafkas(data: bytes, text: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        parse_plain(data)
    assert str(caught.value) == text


def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(parse_plain(b"\0alice\0secret"))
