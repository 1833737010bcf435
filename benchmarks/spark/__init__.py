"""What a cluster takes: Spark beside the local engine on the same file, growth, Kafka to release; docs/scale.md."""
