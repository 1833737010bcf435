"""Releases as OGC API - Features, part 1 (core, GeoJSON, OpenAPI 3.0): what QGIS and GDAL open as it is. Public."""
