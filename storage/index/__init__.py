"""Sparse indexes beside a segment: memory-mapped, rebuilt from the log when in doubt."""
