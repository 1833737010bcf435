"""Events in, releases out: sources, sinks, and what a configuration file says of them."""
