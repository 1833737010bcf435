"""What to expect of a stream before any data is touched: accuracy, by trying it out, and risk, by the definition."""
