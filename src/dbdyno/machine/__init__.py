"""A small guest in the emulation of a whole machine, and what it measures of its own start."""
