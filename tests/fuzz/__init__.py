"""Mutated frames against a whole broker: docs/developing/hostile-clients.md."""
