"""Notes as files: frontmatter, schema, names, redaction, the folder. Knows no git and no index."""
