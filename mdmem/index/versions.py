"""Versions of what is derived from a note; each stands in the header of the part that depends on it."""

# What is read from a note into the catalog: a change builds the catalog again.
PARSER = 7
# How text becomes terms: a change builds the text index again.
ANALYZER = 2
# How a body is cut into windows; part of the fingerprint of each vector.
WINDOWS = 4
