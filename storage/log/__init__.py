"""The log of one partition: segments, append, read, retention, recovery."""
