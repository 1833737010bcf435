"""The paper's experiments: its data, its methods, its figures, and docs/reproduction.md. Not part of the package."""
