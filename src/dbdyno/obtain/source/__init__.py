"""An engine built from its source: where that comes from, what is changed in it, and how it is built."""
