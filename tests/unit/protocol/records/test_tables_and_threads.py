"""Tables that the first use makes: batches are opened in several threads at once."""

import sys
import threading

import pytest

from protocol.records import chain, runs


@pytest.mark.parametrize(
    ("module", "name", "make", "length"),
    [
        (chain, "_table", chain.distances, 256),
        (runs, "_fields", runs._field_sizes, 256),
        (runs, "_two_bytes", lambda: runs._two_bytes_up_to(8192), 8192 - runs.ONE_BYTE),
    ],
)
def test_no_thread_sees_half_a_table(module, name, make, length, monkeypatch) -> None:
    chain.distances()
    table: list[object] = []
    monkeypatch.setattr(module, name, table)
    seen: list[int] = []

    def look(*_: object) -> object:
        """Note the length that another thread could see between any two lines."""
        seen.append(len(table))
        return look

    before = sys.gettrace()
    thread = threading.Thread(target=lambda: (sys.settrace(look), make(), sys.settrace(None)))
    thread.start()
    thread.join()
    assert sys.gettrace() is before
    assert set(seen) <= {0, length}
    assert len(table) == length
