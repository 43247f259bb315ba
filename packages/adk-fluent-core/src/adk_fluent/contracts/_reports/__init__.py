"""What checks find, and how it is said: findings, severities, reports and their formats."""
