"""How `scripts/test` runs the tests: in stages, each of which repeats its failed tests once.

`stage.py` runs one stage, `record.py` is the plugin of pytest that notes its outcomes, and
`report.py` says at the end which tests failed, and which only by chance.
"""
