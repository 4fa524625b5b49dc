"""Engines: a folder each, which holds all that is known of it. `engine` says what the rest of Dyno needs.

`registry` lists them, apart, so that a noun can import `engine` without loading every engine.
"""
