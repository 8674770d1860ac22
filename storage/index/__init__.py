"""Sparse indexes beside a segment, memory-mapped and searched with numpy."""
