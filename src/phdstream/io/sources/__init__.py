"""Where events come from: files, cut into ticks. Everything here is private."""
