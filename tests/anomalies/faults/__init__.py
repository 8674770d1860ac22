"""What goes wrong, on purpose: frames by the proxy, processes by the nemesis. All from one seed."""
