"""Attempts to log in, right and wrong ones; and the bugs that the fuzzer would notice."""

from typing import Any

import pytest
import trio

from broker.network.strangers import Strangers
from broker.security.authentication.mechanisms import bearer, plain, scram, signed_tokens
from broker.security.authentication.mechanisms.bearer import ValidToken
from broker.security.authentication.sasl_listener import SaslListener
from storage.waits import Signal
from tests.fuzz.logins import run_attempts
from tests.fuzz.run import Chunk, Limits, Result

GENEROUS = Limits(turn_s=2.0)
"""Tests share the machine with others."""


def run(seed: int, attempts: int) -> Result:
    return run_attempts(Chunk(seed=seed, number=0, frames=attempts), GENEROUS)


def test_some_hundred_attempts() -> None:
    result = run(1, 300)
    assert not result.findings, "\n".join(result.findings.lines())
    assert result.frames == 300
    assert result.answers > 50
    assert result.closed > 150
    assert result.acknowledged == 3


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_twenty_thousand_attempts(number: int) -> None:
    result = run_attempts(Chunk(seed=1, number=number, frames=2_000), GENEROUS)
    assert not result.findings, "\n".join(result.findings.lines())


def test_the_same_seed_is_the_same_run() -> None:
    assert run(2, 60).ends == run(2, 60).ends


# ---- would it notice?


ANYBODY = ValidToken("alice", 10**13)


def kinds(seed: int = 3, attempts: int = 200) -> set[str]:
    return {what for what, _ in run(seed, attempts).findings.first}


async def always(*_: object) -> bool:
    return True


async def never_ends(*_: object) -> None:
    await Signal[None]().parked()


async def never(*_: object) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize(
    ("where", "name", "instead", "found"),
    [
        (plain.PlainMechanism, "is_right", always, "served without proof"),
        (scram, "proof_is_right", lambda *_: True, "served without proof"),
        (signed_tokens, "validate", lambda *_: ANYBODY, "served without proof"),
        (bearer, "parse_bearer", None, "traceback"),
        (plain, "parse_plain", None, "traceback"),
        (SaslListener, "wait_before_refusal", never_ends, ""),  # another bound holds
        (Strangers, "run", never, "neither served nor closed"),
    ],
)
def test_what_breaks_a_rule_is_found(
    where: Any, name: str, instead: Any, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("a bug")

    assert hasattr(where, name)
    monkeypatch.setattr(where, name, crash if instead is None else instead)
    kinds_found = kinds()
    assert found in kinds_found if found else not kinds_found
