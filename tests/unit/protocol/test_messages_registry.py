"""The registry's table against the declarations, and its laziness."""

import subprocess
import sys

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.registry import (
    SPECS,
    request_api,
    request_codec,
    response_api,
    response_codec,
    spec,
)


@pytest.mark.parametrize("key", SPECS)
def test_the_table_says_what_the_declarations_do(key: int) -> None:
    entry = spec(key)
    for api in (request_api(key), response_api(key)):
        assert api.key == key
        assert api.versions == range(entry.min_version, entry.max_version + 1)
        assert api.flexible_since == entry.flexible_since
        assert [entry.flexible(v) for v in api.versions] == [api.flexible(v) for v in api.versions]
    assert request_api(key).name == f"{entry.message}Request"
    assert entry.supports(entry.max_version)
    assert not entry.supports(entry.max_version + 1)
    assert not entry.supports(-1)


def test_codecs_are_made_once() -> None:
    assert request_codec(ApiKey.FETCH, 12) is request_codec(1, 12)
    assert response_codec(ApiKey.FETCH, 12) is response_codec(1, 12)


def test_what_is_not_declared() -> None:
    with pytest.raises(KeyError):
        spec(ApiKey.VOTE)
    with pytest.raises(KeyError):
        request_codec(999, 0)
    with pytest.raises(ValueError, match="no version 99"):
        request_codec(ApiKey.FETCH, 99)


def test_no_message_is_imported_before_it_is_used() -> None:
    code = (
        "import sys; from protocol.messages import registry; registry.request_codec(18, 0);"
        "print(*[name for name in sys.modules if name.startswith('protocol.messages.')])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == ["protocol.messages.registry", "protocol.messages.api_versions"]
