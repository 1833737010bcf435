"""What every private stream does, and the two methods: the paper's, and tracking."""
