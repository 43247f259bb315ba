"""The clerk; ADK's tools find `root_agent` in `clerk.agent`."""
