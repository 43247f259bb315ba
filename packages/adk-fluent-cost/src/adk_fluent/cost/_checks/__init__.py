"""What ``adk-fluent check`` finds about money."""
