"""What verbs return: trees of labelled nodes, and one renderer each for text, JSON, HDF5 and HTML."""
