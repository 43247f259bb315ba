"""What a case expects, held against what happened. Nothing in here knows ADK."""
