"""An audit: tries to break the promise, and says how hard it tried. See `docs/audit.md`.

Everything here is for whoever checks; nothing that releases imports it.
"""
