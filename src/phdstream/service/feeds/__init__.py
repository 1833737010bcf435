"""Events from brokers: Kafka, Redis Streams, PostgreSQL. Each message is counted once, by its position. **Private.**"""
