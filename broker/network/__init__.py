"""Listeners, connections, the request channel and its handler workers."""
