"""Sparse indexes beside a segment: held against the log, rebuilt from it when in doubt."""
