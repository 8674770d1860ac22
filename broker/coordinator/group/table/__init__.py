"""The tables of a shard, for groups of every kind: groups by id, committed offsets, their expiry.

`group` has the protocol that every kind of group implements; the kinds are packages beside this.
"""
