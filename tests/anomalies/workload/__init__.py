"""The clients of a run: each a process that may be killed at any moment, noting what it does."""
