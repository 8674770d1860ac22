"""A plugin of pytest that has the tests run on the compiled form of the hot modules.

    scripts/test --compiled          or, once `scripts/compile` has run:
    .venv/bin/python -m pytest -p tests.support.compiled_form tests/unit/storage

Compiled code is bound to the functions, classes and constants that it was compiled with. A test
that replaces one of these cannot work on it: it is skipped when it tries to, and the summary of
pytest has the number of these tests. So is one that hands such code a stand-in for one of its own
classes, or derives from one. On the pure form they all run.
"""

import re
import sys
from collections.abc import Generator
from importlib.machinery import ExtensionFileLoader
from pkgutil import resolve_name
from typing import Any

import pytest

from config.form import choose_form, form_that_runs

_ROOMS = ("config", "protocol", "storage", "broker")

choose_form()
if form_that_runs() != "compiled":
    raise pytest.UsageError("there is no compiled form of these sources: run scripts/compile")

_STAND_IN = re.compile(
    r"object expected; got (tests|types|unittest)\."
    r"|interpreted classes cannot inherit from compiled"
)
_replace = pytest.MonkeyPatch.setattr


def _replace_unless_compiled(
    self: pytest.MonkeyPatch, target: Any, *rest: Any, **options: Any
) -> None:
    owner = resolve_name(target.rpartition(".")[0]) if isinstance(target, str) else target
    if _is_compiled(owner):
        pytest.skip("replaces a name in compiled code")
    _replace(self, target, *rest, **options)


def _is_compiled(owner: Any) -> bool:
    name = owner.__name__ if owner in sys.modules.values() else getattr(owner, "__module__", None)
    module = sys.modules.get(name or "")
    spec = getattr(module, "__spec__", None)
    ours = (name or "").partition(".")[0] in _ROOMS
    return ours and spec is not None and isinstance(spec.loader, ExtensionFileLoader)


pytest.MonkeyPatch.setattr = _replace_unless_compiled  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    """As `pytest_pyfunc_call`, for what a fixture makes."""
    return (yield from _skipping_stand_ins())


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Skip a test that hands a stand-in to compiled code."""
    return (yield from _skipping_stand_ins())


def _skipping_stand_ins() -> Generator[None, object, object]:
    try:
        return (yield)
    except TypeError as error:
        if _STAND_IN.search(str(error)):
            pytest.skip("hands a stand-in to compiled code")
        raise
