"""The daemon: everything that has an event loop."""
