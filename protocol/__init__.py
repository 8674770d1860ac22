"""Bytes to values and back: no sockets, no event loop, no clock."""
