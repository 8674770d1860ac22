"""Calls that are refused."""

from collections.abc import Callable
from typing import Any

import pytest

from protocol.errors import ErrorCode, KafkaError


def code_of(call: Callable[..., Any], *args: Any, **kwargs: Any) -> ErrorCode:
    """The code of the KafkaError that a call raises."""
    with pytest.raises(KafkaError) as caught:
        call(*args, **kwargs)
    return caught.value.code
