"""Sparse indexes beside a segment: compared with the log, rebuilt from it when in doubt."""
