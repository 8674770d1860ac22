"""The group coordinator: groups of every kind and their offsets, kept in `__consumer_offsets`.

* `coordinator`: the entrance for requests. `shard`: one partition; it decides and it replays.
  `decision`: what it decides, with the timers that groups set.
* `data/`: plain values: requests, replies, records and their bytes.
* `table/`: groups by id whatever their kind, committed offsets, when they expire.
* `classic/`: Kafka's rebalance protocol. Another kind of group would be a package beside it.
"""
