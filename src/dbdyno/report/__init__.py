"""What an analysis looks like: one file per form, none of which computes a statistic."""
