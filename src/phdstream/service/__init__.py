"""`phdstream serve`: events in over HTTP, releases out on a public schedule. Needs the extra ``service``."""
