import base64
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.sasl import LONGEST, MalformedMessage
from protocol.sasl.scram import (
    ScramMechanism,
    new_credential,
    proof_is_right,
    salted_password,
    server_signature,
)
from protocol.sasl.scram_messages import (
    auth_message,
    binding_of,
    build_client_final,
    build_client_first,
    build_server_final,
    build_server_first,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
)

SHA_256 = ScramMechanism.SHA_256

# RFC 7677, section 3: user "user", password "pencil".
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
ANSWER = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
END = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_example_of_rfc_7677_from_the_server() -> None:
    client = parse_client_first(FIRST)
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    server = build_server_first(client, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", salt, 4096)
    assert server.text.encode() == ANSWER
    final = parse_client_final(FINAL)
    assert (final.nonce, final.binding) == (server.nonce, binding_of(client))
    signed = auth_message(client, server, final.unproved)
    credential = new_credential(SHA_256, "pencil", salt, 4096)
    assert proof_is_right(SHA_256, credential, signed, final.proof)
    signature = server_signature(SHA_256, credential.server_key, signed)
    assert build_server_final(signature) == END


def test_the_example_of_rfc_7677_from_the_client() -> None:
    client = build_client_first("user", "rOprNGfwEbeRWgbNEkqO")
    assert client.data == FIRST
    server = parse_server_first(ANSWER, client)
    salted = salted_password(SHA_256, "pencil", server.salt, server.iterations)
    assert build_client_final(SHA_256, client, server, salted)[0] == FINAL
    assert base64.b64encode(parse_server_final(END)) == END[2:]


@pytest.mark.parametrize(
    ("data", "user", "authorization_id", "extensions", "by_token"),
    [
        (b"n,a=bob,n=bob,r=x", "bob", "bob", {}, False),
        (b"n,,n=a=2Cb=3Dc,r=x", "a,b=c", "", {}, False),
        (b"n,,n=t,r=x,tokenauth=true", "t", "", {"tokenauth": "true"}, True),
        (b"n,,n=t,r=x,tokenauth=TRUE", "t", "", {"tokenauth": "TRUE"}, True),
        (b"n,,n=t,r=x,tokenauth=no,a=b=c", "t", "", {"tokenauth": "no", "a": "b=c"}, False),
    ],
)
def test_parts_of_the_first_message(
    data: bytes, user: str, authorization_id: str, extensions: dict[str, str], by_token: bool
) -> None:
    message = parse_client_first(data)
    assert message.user == user
    assert message.authorization_id == authorization_id
    assert message.extensions == extensions
    assert message.by_token == by_token
    assert message.data == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"y,,n=user,r=x",
        b"p=tls-unique,,n=user,r=x",
        b"n,a=user,n=user",
        b"n,,n=,r=x",
        b"n,,n=user,r=",
        b"n,,m=x,n=user,r=x",
        b"n,,n=us=er,r=x",
        b"n,,n=us=2cer,r=x",
        "n,,n=üser,r=x".encode(),
        b"n,,n=user,r=x,1=2",
        b"n,,n=user,r=x\n",
        b"n,,n=user,r=a b",
        b"n,,n=" + b"u" * LONGEST + b",r=x",
    ],
)
def test_what_is_no_first_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        parse_client_first(data)


@pytest.mark.parametrize(
    "data", [b"", b"x", b"c=biws,r=x", b"c=biws,r=x,p=?", b"c=bi,r=x,p=eHh4", b"r=x,p=eHh4"]
)
def test_what_is_no_last_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        parse_client_final(data)


@pytest.mark.parametrize("nonce", ["abc", "abx1", "1abc", ""])
def test_a_client_refuses_a_nonce_that_does_not_go_on_with_its_own(nonce: str) -> None:
    with pytest.raises(MalformedMessage):
        parse_server_first(f"r={nonce},s=c2FsdA==,i=4096".encode(), build_client_first("u", "abc"))


def test_a_client_learns_of_the_servers_error() -> None:
    with pytest.raises(MalformedMessage, match="other-error"):
        parse_server_final(b"e=other-error")


NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=0x7F), min_size=1)
NONCES = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=","), min_size=1
)


@given(NAMES, NONCES, st.booleans())
def test_what_is_built_is_parsed(user: str, nonce: str, by_token: bool) -> None:
    built = build_client_first(user, nonce, by_token=by_token)
    assert parse_client_first(built.data) == built


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    for parse in (parse_client_first, parse_client_final, parse_server_final):
        with contextlib.suppress(MalformedMessage):
            parse(data)
