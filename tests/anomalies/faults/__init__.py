"""Faults, all from one seed: the proxy harms frames, the nemesis harms processes."""
