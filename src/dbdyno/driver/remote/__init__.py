"""A driver on another host, over SSH: the file that is copied there, its start, and the link to it."""
