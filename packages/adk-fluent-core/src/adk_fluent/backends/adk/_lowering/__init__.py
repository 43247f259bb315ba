"""From IR to ADK's objects: rules, values, and what they ask for while a pipeline is compiled."""
