"""Model files shipped with the package, one folder each with a model.json. Data only."""
