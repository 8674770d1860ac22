"""Looking at a cluster again and again."""

import pytest

from tools.cluster.watching import watch
from tools.errors import CommandError


def test_it_looks_as_often_as_asked_also_while_nobody_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    looks: list[int] = []
    pauses: list[float] = []

    def show() -> None:
        looks.append(len(looks))
        if looks[-1] == 1:
            raise CommandError("no broker answers")
        print(f"look {looks[-1]}")

    watch(show, 5.0, 3, pauses.append)
    assert looks == [0, 1, 2]
    assert len(pauses) == 2
    assert all(4.0 < pause <= 5.0 + 5.0 for pause in pauses)
    said = capsys.readouterr()
    assert said.out.splitlines() == ["look 0", "look 2"]
    assert "no broker answers" in said.err
