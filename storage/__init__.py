"""One broker's disk: plain synchronous Python, no event loop."""
