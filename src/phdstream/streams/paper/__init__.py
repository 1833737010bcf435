"""The paper's method, repaired where it was not private."""
