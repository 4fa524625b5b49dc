"""Pages of a store on loopback: all runs, each report, trends, the museum, and a run that is under way.

One thread draws, and only between blocks (`host/host_lock.py`). What is asked for while a block is measured
is answered with what is drawn already.
"""
