"""Volumes: a block device, a file system on it, and a mount that only Dyno and its servers see.

A volume is made for one trial from an image that holds the pristine data, so that every trial of a
variant starts from the same blocks. Its loop device clears itself, and its mount lives in a namespace
of Dyno's own: nothing of it outlives Dyno and the servers that Dyno started.
"""
