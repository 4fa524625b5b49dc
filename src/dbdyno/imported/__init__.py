"""Runs that Dyno did not carry out: the logs and summaries that other tools left, as trials that reports
read.

`files` finds the files of each repetition; `pgbench`, `sysbench` and `summaries` read them; `tallies` makes a
tally of what they hold, and a run of the tallies. What a file does not tell stays unknown.
"""
