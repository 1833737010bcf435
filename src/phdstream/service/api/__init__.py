"""The service over HTTP, version 1: private events in, public releases out."""
