"""Builds the site: gathers what Sphinx reads, runs it, and looks at what came out."""

from __future__ import annotations

import io
import logging
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sphinx.application import Sphinx

from docs import commands, sources, verify
from docs.names import Names
from docs.pages import GITHUB, Page, Stage, others, packages
from docs.problems import DocsError
from docs.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docs.pages import Package

_API: Final = "api"  # folder of the reference
_COMMANDS: Final = "adk_fluent.cli"  # the module whose page has them

_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_WARNING: Final = re.compile(r"\n(?=.*(?:WARNING|ERROR|CRITICAL): )")

_SETTINGS: Final[Mapping[str, Any]] = {
    "project": "adk-fluent",
    "extensions": ["myst_parser", "sphinx.ext.linkcode"],
    "nitpicky": True,
    # Names of Python's and of other libraries are shown and not linked: their lists of names
    # would have to be fetched.
    "nitpick_ignore_regex": [("py:.*", r"(?!adk_fluent\b).*")],
    "myst_heading_anchors": 6,
    "smartquotes_action": "D",  # dashes only
    "python_maximum_signature_line_length": 1,  # `reference` says which are short enough
    "python_trailing_comma_in_multi_line_signatures": False,
    "add_module_names": False,
    "toc_object_entries_show_parents": "hide",
    "html_theme": "furo",
    "html_static_path": [str(Path(__file__).parent / "static")],
    "html_css_files": ["site.css"],
    "html_title": "adk-fluent",
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    "html_show_copyright": False,
    "html_domain_indices": False,
}


@dataclass(frozen=True, slots=True)
class Content:
    """What the site holds.

    Attributes:
        pages: Every page of the repository.
        names: The public names, by module.
        objects: Whatever the reference describes: the file and the line, by path.
    """

    pages: list[Page]
    names: dict[str, list[str]]
    objects: dict[str, tuple[str, int]]

    def address(self, module: str) -> str:
        """The page that describes a module."""
        return f"{_API}/{module}"


def build(root: Path, out: Path) -> Content:
    """Build the site of a repository.

    Args:
        root: The repository.
        out: Where the site goes; a site that was there is replaced.

    Raises:
        DocsError: Something is wrong with the pages, the docstrings or the site; all of it is told.
    """
    if out.exists() and any(out.iterdir()) and not (out / "objects.inv").exists():
        raise DocsError(
            [f"{out} holds something that is no site; empty it, or name another folder"]
        )
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        content = gather(root, work)
        _run_sphinx(work, content)
        made = work / "site"
        problems = verify.site(made, [page.name for page in content.pages])
        problems += verify.described(
            made, {content.address(module): names for module, names in content.names.items()}
        )
        if problems:
            raise DocsError(problems)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(made, out)
    return content


def gather(root: Path, work: Path) -> Content:
    """Write what Sphinx reads to ``staged``.

    Raises:
        DocsError: Something is wrong with the pages or the docstrings.
    """
    staged = work / "staged"
    flaws: list[str] = []
    found = packages(root, flaws)
    pages = [*others(root), *(page for package in found for page in package.pages)]
    modules, objects, problems = _describe(root, work, staged)
    stage = Stage(root, staged, pages)
    front, *rest = pages
    stage.add(front, more=_navigation(found, rest, list(modules)))
    for page in rest:
        stage.add(page)
    if problems := [*flaws, *problems, *stage.problems]:
        raise DocsError(problems)
    return Content(pages, modules, objects)


def _describe(
    root: Path, work: Path, staged: Path
) -> tuple[dict[str, list[str]], dict[str, tuple[str, int]], list[str]]:
    """Write the reference; give the names by module, what is described, and what is wrong."""
    complaints = sources.Complaints()
    logger = logging.getLogger("griffe")
    logger.addHandler(complaints)
    try:
        found = sources.load(root, work / "merged")
        names = Names(found)
        reference = Reference(found, names)
        texts = {
            path: reference.module(
                path, commands.reference(work / "merged") if path == _COMMANDS else ""
            )
            for path in found.modules
        }
        types = reference.types()
    finally:
        logger.removeHandler(complaints)
    for path, text in texts.items():
        page = staged / _API / f"{path}.rst"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text + types.get(path, ""), "utf-8")
    heard = [each.replace(f"{work / 'merged'}{os.sep}", "") for each in complaints.heard]
    modules = {path: sources.exports(module) for path, module in found.modules.items()}
    return modules, reference.objects, [*heard, *names.problems, *reference.problems]


def _navigation(found: list[Package], rest: list[Page], modules: list[str]) -> str:
    """The tables of contents, which become the side bar."""
    own = {page for package in found for page in package.pages}
    groups = {package.name: [_entry(page) for page in package.pages] for package in found}
    groups["Reference"] = [f"{_API}/{module}" for module in sorted(modules)]
    groups["Project"] = [page.name for page in rest if page not in own]
    return "".join(
        "\n```{toctree}\n:hidden:\n:caption: " + "\n".join([title, "", *entries]) + "\n```\n"
        for title, entries in groups.items()
        if entries
    )


def _entry(page: Page) -> str:
    """A line of a table of contents; most pages are called by their own titles."""
    for name, title in (("/README.md", "Overview"), ("/CHANGELOG.md", "Changelog")):
        if page.source.endswith(name):
            return f"{title} <{page.name}>"
    return page.name


def _run_sphinx(work: Path, content: Content) -> None:
    """Run Sphinx.

    Raises:
        DocsError: It warned of something.
    """
    warnings = io.StringIO()

    def source(domain: str, info: Mapping[str, str]) -> str | None:
        place = content.objects.get(f"{info['module']}.{info['fullname']}")
        return None if place is None else f"{GITHUB}/blob/main/{place[0]}#L{place[1]}"

    staged = work / "staged"
    app = Sphinx(
        staged,
        None,
        work / "site",
        work / "doctrees",
        "html",
        confoverrides={**_SETTINGS, "linkcode_resolve": source},
        status=None,
        warning=warnings,
        freshenv=True,
    )
    app.build()
    (work / "site" / ".buildinfo").unlink(missing_ok=True)
    text = _COLOUR.sub("", warnings.getvalue()).replace(f"{staged}{os.sep}", "").strip()
    if text:
        raise DocsError(_WARNING.split(text))
