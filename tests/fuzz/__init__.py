"""Mutated frames against a whole broker: docs/hostile-clients.md."""
