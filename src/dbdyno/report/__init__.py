"""What an analysis looks like: a file per form, and rooms for their words, parts, figures and templates.

Nothing here computes a statistic.
"""
