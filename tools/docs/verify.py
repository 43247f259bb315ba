"""Looks at a built site as a browser would, without one."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

#: What makes a browser load something, by element. Of links those that are no style or picture load
#: nothing, but there is none that may lead outside, either.
_LOADS: Final = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
_CSS_LOAD: Final = re.compile(
    r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^\s'\")]+)", re.IGNORECASE
)
_JS_ADDRESS: Final = re.compile(r"""["'`]((?:https?|wss?):)?//[^\s"'`]+""")
_COMMENT: Final = re.compile(r"/\*.*?\*/|(?<![:\"'`\\])//[^\n]*", re.DOTALL)
_NAMES_OF_XML: Final = ("http://www.w3.org/",)  # a namespace, which nobody loads


class Document(HTMLParser):
    """What matters of one page of the site.

    Attributes:
        ids: Where links may lead within it.
        links: Where its anchors lead.
        navigation: Those of them that stand in the side bar.
        loads: What a browser loads to show it.
        code: Styles and programs that are written into it, by element.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.navigation: list[str] = []
        self.loads: list[str] = []
        self.code: list[tuple[str, str]] = []
        self._within = ""
        self._item = False  # the element before was an entry of the side bar
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element is, leads to and loads."""
        given = {key: value or "" for key, value in attrs}
        self._within = tag
        if "id" in given:
            self.ids.add(given["id"])
        if "style" in given:
            self.code.append(("style", given["style"]))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            if self._item:
                self.navigation.append(given["href"])
        self._item = tag == "li" and "toctree-l" in given.get("class", "")
        for key in _LOADS.get(tag, ()):
            value = given.get(key, "")
            parts = value.split(",") if key == "srcset" else [value]
            self.loads.extend(part.split()[0] for part in parts if part.strip())

    def handle_data(self, data: str) -> None:
        """Note styles and programs."""
        if self._within in {"script", "style"}:
            self.code.append((self._within, data))

    def handle_endtag(self, tag: str) -> None:
        """What follows belongs to something else."""
        self._within = ""


def site(folder: Path, pages: Sequence[str]) -> list[str]:
    """Say what is wrong with a site: links, pictures, the navigation, and what it fetches.

    Args:
        folder: The site.
        pages: The pages that have to be in the navigation, without ending.
    """
    documents = {
        path.relative_to(folder).as_posix(): Document(path.read_text("utf-8"))
        for path in sorted(folder.rglob("*.html"))
    }
    problems: list[str] = []
    for name, document in documents.items():
        problems += _outside(name, document)
        problems += _dead(folder, name, document, documents)
    for path in sorted(path for kind in ("css", "js", "svg") for path in folder.rglob(f"*.{kind}")):
        text, name = path.read_text("utf-8"), path.relative_to(folder).as_posix()
        kind = {"css": "style", "js": "script"}.get(path.suffix[1:], "svg")
        problems += [f"{name}: loads {address}" for address in addresses(kind, text)]
    listed = {unquote(urlsplit(link).path) for link in documents["index.html"].navigation}
    problems += [
        f"{page}: not in the navigation"
        for page in pages
        if page != "index" and f"{page}.html" not in listed
    ]
    return problems


def described(folder: Path, names: Mapping[str, Iterable[str]]) -> list[str]:
    """Say which public names a site does not describe.

    Args:
        folder: The site.
        names: The names of a module, by the page that describes it, without ending.
    """
    problems: list[str] = []
    for page, wanted in names.items():
        path = folder / f"{page}.html"
        ids = Document(path.read_text("utf-8")).ids if path.exists() else set[str]()
        module = page.rpartition("/")[2]
        problems += [
            f"{page}: does not describe {module}.{name}"
            for name in wanted
            if f"{module}.{name}" not in ids
        ]
    return problems


def addresses(kind: str, text: str) -> Iterator[str]:
    """What a style, a program or a picture would load from elsewhere.

    Args:
        kind: ``style``, ``script`` or ``svg``.
        text: What is in it.
    """
    if kind == "style":
        yield from _CSS_LOAD.findall(text)
    elif kind == "script":
        for match in _JS_ADDRESS.finditer(_COMMENT.sub("", text)):
            address = match[0][1:]
            if not address.startswith(_NAMES_OF_XML):
                yield address
    else:
        yield from _CSS_LOAD.findall(text)
        yield from (load for load in Document(text).loads if _is_outside(load))


def _is_outside(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in {"", "data"}


def _outside(name: str, document: Document) -> Iterator[str]:
    for address in document.loads:
        if _is_outside(address):
            yield f"{name}: loads {address}"
    for kind, text in document.code:
        for address in addresses(kind, text):
            yield f"{name}: loads {address}"


def _dead(
    folder: Path, name: str, document: Document, documents: Mapping[str, Document]
) -> Iterator[str]:
    here = folder / name
    for address in [*document.links, *document.loads]:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        there = (here.parent / unquote(parts.path)).resolve() if parts.path else here.resolve()
        if there.is_dir():
            there /= "index.html"
        if not there.is_file():
            yield f"{name}: leads to {address}, which does not exist"
            continue
        target = documents.get(there.relative_to(folder.resolve()).as_posix())
        anchor = unquote(parts.fragment)
        if target is not None and anchor not in {"", "top", *target.ids}:
            yield f"{name}: leads to {address}, which has no such place"
