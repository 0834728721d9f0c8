"""One small interface to a language model, with four back ends."""
