"""Partitions as clients see them: append, read, watermarks, long polls."""
