"""Programs that work on a broker's directories without a running broker.

`tools` start them as processes (`python -m broker.offline.adopt`) because tools do not import the
daemon.
"""
