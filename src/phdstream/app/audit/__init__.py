"""`phdstream audit`: the checks that need the whole road, from a file or a request to the folder of releases."""
