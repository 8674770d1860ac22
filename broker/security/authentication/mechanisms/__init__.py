"""SASL mechanisms, as listeners offer them: each is a `Mechanism` that begins `Exchange`s.

A module is imported when a listener offers its mechanism.
"""
