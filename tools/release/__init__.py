"""Release the packages of the workspace: version, changelog, build, checks, public API, tag."""
