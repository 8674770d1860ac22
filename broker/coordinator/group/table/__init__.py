"""The tables of a shard, for groups of every kind: groups by id, committed offsets, their expiry.

`group` says what is asked of any kind of group; the kinds are packages beside this one.
"""
