"""Engines: one file each, holding all that is known of it. The rest of Dyno speaks to the protocols of
`base`.

`registry` lists them, apart, so that a noun can import `base` without loading every engine.
"""
