"""Data that a user brings: dumps and data folders. They are read and never written.

What is here knows files alone: how a dump is packed, what a folder's contents are, who holds a file. What an
engine makes of them stands in the engine's own folder, in `taking.py`.
"""
