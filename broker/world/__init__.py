"""A broker's surroundings: time, disk, randomness, network, a medium for metadata, workers.

Everything that differs between a broker on a machine and one in a test or a simulation is behind
the protocols of this room. A `World` holds one implementation of each; `broker.server` hands them
to the parts. No other room of `broker` reads a clock, starts a thread, draws a random number or
opens a socket (`tests/meta/test_seams.py`). The disk's protocol is `storage.filesystem.FileSystem`.
"""
