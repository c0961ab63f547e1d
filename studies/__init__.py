"""The paper's studies, and the runner that keeps their results in one SQLite file."""
