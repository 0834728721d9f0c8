"""The warm process: holds the model and the indexes in use, so that hooks and recall need not load them."""
