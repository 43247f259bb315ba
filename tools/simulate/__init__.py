"""Workers, queues and a database of adk-fluent-distributed, simulated at any size."""
