"""Cluster metadata: the store, the image read by handlers, the controller."""
