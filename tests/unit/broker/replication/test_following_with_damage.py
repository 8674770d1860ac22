"""A follower whose own log is damaged where it has to be cut: only that partition waits."""

import pytest

from tests.support.replication.pair import Pair


@pytest.mark.parametrize("mark", [2, 5], ids=["at the beginning", "out of the leader's range"])
def test_damage_that_hides_the_place_of_a_cut_stops_one_partition_and_no_broker(
    mark: int, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Pair([(0, 3)], [(0, 5)], mark=mark)
    log = pair.log_of(pair.follower)
    log.leader_epochs.clear()
    file = log.segments.active.file
    right = file.pread(1, 8)
    file.pwrite(b"\xff", 8)
    pair.begin(1)
    pair.loop.run(3.0)
    assert "cannot be copied from broker 1 now" in caplog.text
    assert "no batch at position" in caplog.text
    assert log.log_end_offset == 5
    file.pwrite(right, 8)  # as if the disk had recovered
    pair.loop.run(30.0)
    pair.check_equal()
