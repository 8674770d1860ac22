import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.sasl import MalformedMessage
from protocol.sasl.oauthbearer import (
    BearerMessage,
    build_bearer,
    build_refusal,
    parse_bearer,
    parse_refusal,
)

TOKEN = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
EXAMPLE = (
    f"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01auth=Bearer {TOKEN}\x01\x01"
).encode()


def test_the_example_of_rfc_7628() -> None:
    assert parse_bearer(EXAMPLE) == BearerMessage(
        token=TOKEN,
        authorization_id="user@example.com",
        extensions={"host": "server.example.com", "port": "143"},
    )


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "Invalid OAUTHBEARER client first message"),
        (b"\x01", "Invalid OAUTHBEARER client first message"),
        (b"y,,\x01auth=Bearer x\x01\x01", "Invalid OAUTHBEARER client first message"),
        (b"n,,\x01auth=Bearer x\x01", "Invalid OAUTHBEARER client first message"),
        (b"n,,\x01host=x\x01\x01", "Invalid OAUTHBEARER client first message: 'auth' not"),
        (b"n,,\x01\x01", "Invalid OAUTHBEARER client first message: 'auth' not specified"),
        (b"n,,\x01auth=x\x01\x01", "Invalid OAUTHBEARER client first message: invalid 'auth'"),
        (b"n,,\x01auth=Basic x\x01\x01", "Invalid scheme in OAUTHBEARER client first message"),
        (b"n,,\x01auth=Bearer a,b\x01\x01", "Invalid OAUTHBEARER client first message: invalid"),
    ],
)
def test_errors_have_the_words_of_kafkas(data: bytes, text: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        parse_bearer(data)
    assert str(caught.value).startswith(text)


def test_the_scheme_may_be_in_any_case() -> None:
    assert parse_bearer(b"n,,\x01auth=bEARER x.y.z\x01\x01").token == "x.y.z"


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z]+", fullmatch=True), st.from_regex(r"[!-~]+", fullmatch=True)
    )
)
def test_what_is_built_is_parsed(extensions: dict[str, str]) -> None:
    extensions.pop("auth", None)
    message = BearerMessage(token="a.b.c", authorization_id="", extensions=extensions)
    assert parse_bearer(build_bearer("a.b.c", extensions)) == message


def test_a_refusal_is_json_with_kafkas_blanks() -> None:
    assert build_refusal("invalid_token") == b'{"status":"invalid_token"}'
    told = build_refusal("insufficient_scope", '[a, "b"]')
    assert told.startswith(b'{"status":"insufficient_scope", "scope":')
    assert json.loads(told) == {"status": "insufficient_scope", "scope": '[a, "b"]'}
    assert parse_refusal(told) == "insufficient_scope"


@pytest.mark.parametrize("data", [b"", b"x", b"[]", b"{}"])
def test_what_is_no_refusal_has_no_reason(data: bytes) -> None:
    assert parse_refusal(data) == ""


def test_the_token_is_not_shown() -> None:
    assert TOKEN not in repr(parse_bearer(EXAMPLE))
