"""Engines: one file each, holding all that is known of it. The rest of Dyno speaks to the two protocols of `base.py`."""
