"""Record batches: the hot path of the wire and of the log."""
