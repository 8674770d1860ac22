"""What a broker finds around it: time, disk, chance, network, a place for metadata, hands to work.

Everything that differs between a broker on a machine and one in a test or a simulation is in this
room, behind protocols; a `World` is one of each, and is handed down from `broker.server`. Nothing
else in `broker` reads a clock, starts a thread, rolls a die or opens a socket
(`tests/meta/test_seams.py`). The disk's protocol is `storage.filesystem.FileSystem`.
"""
