"""The clients of a run: each is a process that notes what it does and may be killed at any time."""
