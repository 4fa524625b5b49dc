"""Runs that Dyno did not carry out: the logs that pgbench and sysbench left, as trials that reports read.

`files` finds the files of each repetition, `pgbench` and `sysbench` read them, `counted` makes a tally of
what they hold, `run` makes a run of the tallies, and `study` the study that these are trials of. What a log
does not tell stays unknown.
"""
