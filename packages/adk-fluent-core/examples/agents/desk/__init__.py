"""The desk; ADK's tools find `root_agent` in `desk.agent`."""
