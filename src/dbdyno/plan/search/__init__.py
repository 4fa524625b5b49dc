"""The ask function of a search: which candidates come next, when the best of them are confirmed, and which of
the winner's changes are taken back. All of it follows from the records."""
