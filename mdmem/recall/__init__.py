"""From a question to notes: query, streams, fuse, adjust, diversify, pack."""
