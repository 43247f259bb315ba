"""Build the site of the documentation: every page of the packages, and a reference of their API.

Run it with ``uv run python -m tools.docs build`` or ``serve``. What it is made of, and why:

- Sphinx with MyST and Furo makes the site. All three are under free licences (BSD, MIT, MIT), work
  offline, fetch nothing when a page is read, and read pages as GitHub shows them. Sphinx knows
  every name and every heading, so that a reference which leads nowhere is a failure. The other
  choice was Material for MkDocs with mkdocstrings: Material's support ended in November 2026, the
  last MkDocs is of August 2024, and Zensical, which follows them, is an alpha (0.0.73) that calls
  its support of mkdocstrings preliminary and passes over settings that it does not know.
- Griffe, which mkdocstrings uses, reads the sources without running them. Sphinx's own autodoc
  imports them: it does not see what only a type checker sees (the types in our signatures), nor
  comments of constants that a public module takes from a private one. sphinx-autodoc2 was last
  released in 2023; sphinx-autoapi shows such types by their private paths.

``pages`` finds the pages and makes links of GitHub ones of the site, ``sources`` finds the public
modules, ``reference`` describes them, ``site`` runs Sphinx, ``verify`` looks at what came out.
"""

from __future__ import annotations
