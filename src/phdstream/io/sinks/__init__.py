"""Where releases go. Everything here is public."""
