"""Layers of factors: one file each. A layer sets its knobs before the server starts and proves them on the
running system."""
