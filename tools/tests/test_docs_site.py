"""The site of the documentation: what it is made of, what stops it, and the real one."""

from __future__ import annotations

import html
import re
import subprocess
import sys
import threading
import urllib.request
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from docs import cli, verify
from docs.pages import GITHUB, packages
from docs.problems import DocsError
from docs.site import build, gather

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
CORE, TOY = "packages/adk-fluent-core", "packages/adk-fluent-toy"

# A repository of two packages. Each test changes what it is about.
FILES = {
    "README.md": f"""\
        # Front

        See [core]({CORE}), [its page]({CORE}/docs/first.md#a-place) and [the licence](LICENSE).
        """,
    "LICENSE": "free",
    f"{CORE}/README.md": f"""\
        # adk-fluent-core

        - pages: [second]({GITHUB}/blob/main/{CORE}/docs/second.md),
          [first](docs/first.md)
        - examples: [shout]({GITHUB}/blob/main/{CORE}/examples/shout.py)

        Read [the other package]({GITHUB}/tree/main/{TOY}) and [outside](https://example.org/x).
        """,
    f"{CORE}/CHANGELOG.md": "# Changelog of core\n",
    f"{CORE}/examples/shout.py": "print('HELLO')\n",
    f"{CORE}/docs/pictures/dot.svg": "<svg xmlns='http://www.w3.org/2000/svg'><g/></svg>",
    f"{CORE}/docs/first.md": """\
        # First

        ![A dot](pictures/dot.svg)

        <!-- file: secret.py -->
        ```python
        LINK = "[a](nowhere.md)"
        ```

        ## A place

        Back to [the start](../README.md) and [below](#a-place).
        """,
    f"{CORE}/docs/second.md": "# Second\n\nMore in [first](first.md#a-place).\n",
    f"{CORE}/src/adk_fluent/__init__.py": '''\
        """What most programs need: `Builder`."""

        from __future__ import annotations

        from typing import TYPE_CHECKING

        from adk_fluent._words import LOUD, Fluent as Builder, Tone

        if TYPE_CHECKING:
            from adk_fluent._lazy import late

        __all__ = ["LOUD", "Builder", "Tone", "late"]
        ''',
    f"{CORE}/src/adk_fluent/_lazy.py": '''\
        """Imported when it is used."""

        from __future__ import annotations

        from typing import TYPE_CHECKING, overload

        if TYPE_CHECKING:
            from adk_fluent._words import Fluent, Spoken

        @overload
        def late(word: Spoken) -> Fluent: ...
        @overload
        def late(word: None = None, *, loud: bool) -> None: ...
        def late(word: Spoken | None = None, *, loud: bool = False) -> Fluent | None:
            """Say a `word`.

            Raises:
                KeyError: It is none.
            """
        ''',
    f"{CORE}/src/adk_fluent/_words.py": '''\
        """Where things are defined."""

        from __future__ import annotations

        from typing import Any, Final, Literal, TypeAlias

        #: How something is said.
        Tone = Literal["high", "low"]
        #: The tone of `Builder.shout`.
        LOUD: Final[Tone] = "high"
        #: A word, or what has one.
        Spoken: TypeAlias = str | list[str]

        class _Base:
            def shout(self, word: Spoken, /, *more: Any, tone: Tone = LOUD) -> bool:
                """Say it so that `LOUD` is an understatement."""
                return self._hidden(word)

            def _hidden(self, word: Spoken) -> bool:
                return bool(word)

        class Fluent(_Base):
            """Makes `Tone`s.

            Args:
                name: What it is called.

            Attributes:
                calls: How often.
            """

            def __init__(self, name: str) -> None:
                self.name = name
                self.calls: int = 0
        ''',
    f"{TOY}/README.md": "# adk-fluent-toy\n\nA layer without pages.\n",
    f"{TOY}/src/adk_fluent/toy/__init__.py": '''\
        """A layer, which `adk_fluent` knows nothing of."""

        from __future__ import annotations

        from adk_fluent import Builder

        class Toy(Builder):
            """A builder of the layer, with `Toy.shout`."""

        __all__ = ["Builder", "Toy"]
        ''',
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
    return root


@pytest.fixture
def change(repository: Path) -> Callable[[str, str, str], None]:
    def changed(name: str, old: str, new: str) -> None:
        path = repository / name
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    return changed


def problems(root: Path, work: Path) -> list[str]:
    with pytest.raises(DocsError) as raised:
        gather(root, work)
    return raised.value.problems


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "tools.docs", *arguments)
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False
    )


# --- pages ----------------------------------------------------------------------------------------


def test_links_of_github_become_links_of_the_site(repository: Path, tmp_path: Path) -> None:
    gather(repository, tmp_path)
    front = (tmp_path / "staged" / "index.md").read_text("utf-8")
    assert "[core](core/index.md)" in front
    assert "[its page](core/first.md#a-place)" in front
    assert f"[the licence]({GITHUB}/blob/main/LICENSE)" in front
    core = (tmp_path / "staged" / "core" / "index.md").read_text("utf-8")
    assert "[second](second.md)" in core
    assert "[the other package](../toy/index.md)" in core
    assert f"[shout]({GITHUB}/blob/main/{CORE}/examples/shout.py)" in core
    assert "[outside](https://example.org/x)" in core
    first = (tmp_path / "staged" / "core" / "first.md").read_text("utf-8")
    assert '"[a](nowhere.md)"' in first  # code stays as it is
    assert "[the start](index.md)" in first
    assert (tmp_path / "staged" / "core" / "pictures" / "dot.svg").exists()


def test_the_order_is_that_of_the_readme(repository: Path) -> None:
    found: list[str] = []
    core, toy = packages(repository, found)
    assert found == []
    assert [page.name for page in core.pages] == [
        *("core/index", "core/second", "core/first", "core/changelog")
    ]
    assert [page.name for page in toy.pages] == ["toy/index"]


@pytest.mark.parametrize(
    "flaw",
    [
        (
            *(f"{CORE}/README.md", "[first](docs/first.md)", "and more"),
            f"{CORE}/docs/first.md: in no navigation; link it under '- pages:' in {CORE}/README.md",
        ),
        (
            *(
                f"{CORE}/README.md",
                "[first](docs/first.md)",
                "[first](docs/first.md), [x](docs/x.md)",
            ),
            f"{CORE}/README.md: '- pages:' links {CORE}/docs/x.md, which is no page",
        ),
        (
            *(f"{CORE}/docs/second.md", "first.md#", "third.md#"),
            f"{CORE}/docs/second.md:3: a link to {CORE}/docs/third.md, which does not exist",
        ),
        (
            *(f"{CORE}/docs/first.md", "dot.svg", "no.svg"),
            f"{CORE}/docs/first.md:3: a link to {CORE}/docs/pictures/no.svg, which does not exist",
        ),
        (
            *(f"{CORE}/docs/first.md", "```python", "```mermaid"),
            f"{CORE}/docs/first.md:6: a Mermaid block; show the SVG that .visualize() writes",
        ),
    ],
)
def test_what_is_wrong_with_a_page(
    repository: Path,
    tmp_path: Path,
    change: Callable[[str, str, str], None],
    flaw: tuple[str, str, str, str],
) -> None:
    *changed, problem = flaw
    change(*changed)
    assert problem in problems(repository, tmp_path)


# --- docstrings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flaw",
    [
        (
            *('"""Say it so that `LOUD` is an understatement."""', ""),
            "_words.py:15: adk_fluent.Builder.shout has no docstring",
        ),
        (
            *("#: How something is said.", ""),
            "_words.py:8: adk_fluent.Tone has no docstring",
        ),
        ("`LOUD` is", "`QUIET` is", "_words.py:15: `QUIET` stands for nothing"),
        (
            *("calls: How often.", "other: How often."),
            "_words.py:34: adk_fluent.Builder.calls has no docstring",
        ),
        ("name: What", "nam: What", "Parameter 'nam' does not appear in the function signature"),
        (
            *("tone: Tone = LOUD)", "tone: Nowhere = LOUD)"),
            "Nowhere: a signature names it, and nothing defines it",
        ),
    ],
)
def test_what_is_wrong_with_a_docstring(
    repository: Path,
    tmp_path: Path,
    change: Callable[[str, str, str], None],
    flaw: tuple[str, str, str],
) -> None:
    old, new, problem = flaw
    change(f"{CORE}/src/adk_fluent/_words.py", old, new)
    found = problems(repository, tmp_path)
    assert any(problem in each for each in found), found


def test_an_error_that_is_none_is_not_raised(
    repository: Path, tmp_path: Path, change: Callable[[str, str, str], None]
) -> None:
    change(f"{CORE}/src/adk_fluent/_lazy.py", "KeyError:", "KeysError:")
    assert problems(repository, tmp_path) == [
        f"{CORE}/src/adk_fluent/_lazy.py:14: raises KeysError, which is nothing"
    ]


def test_what_is_exported_has_to_be_there(
    repository: Path, tmp_path: Path, change: Callable[[str, str, str], None]
) -> None:
    change(f"{CORE}/src/adk_fluent/__init__.py", '"late"]', '"late", "later"]')
    assert problems(repository, tmp_path) == [
        f"{CORE}/src/adk_fluent/__init__.py:1: exports later, which it does not have"
    ]


# --- the built site -------------------------------------------------------------------------------


def test_a_site(repository: Path, tmp_path: Path) -> None:
    done = run("build", "--root", str(repository), "--out", str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    core = (tmp_path / "site" / "api" / "adk_fluent.html").read_text("utf-8")
    toy = (tmp_path / "site" / "api" / "adk_fluent.toy.html").read_text("utf-8")
    for name in ("Builder", "Builder.shout", "Builder.calls", "LOUD", "Tone", "late"):
        assert f'id="adk_fluent.{name}"' in core
    shown = text_of(core)
    assert "shout(word: Spoken, /, *more: Any, tone: Tone = LOUD) → bool" in shown
    assert "late(word: Spoken) → Builder" in shown  # each overload, by public names
    assert "late(word: None = None, *, loud: bool) → None" in shown
    assert "type Spoken = str | list[str]" in shown  # nobody can import it, and readers need it
    assert "_hidden" not in shown
    assert "_Base" not in shown
    assert f"{GITHUB}/blob/main/{CORE}/src/adk_fluent/_words.py#L" in core
    assert 'id="adk_fluent.toy.Builder"' in toy
    assert "Described as adk_fluent.Builder" in text_of(toy)
    assert "Inherited from Builder : calls , shout" in text_of(toy)
    assert "secret.py" not in text_of(
        (tmp_path / "site" / "core" / "first.html").read_text("utf-8")
    )


def text_of(page: str) -> str:
    """What a reader sees, roughly."""
    main = re.sub(r"<!--.*?-->", "", page.partition("<article")[2], flags=re.DOTALL)
    plain = re.sub(r"<[^>]+>", "", re.sub(r"</(?:code|p|dt|li|h\d)>", " ", main))
    return " ".join(html.unescape(plain).split())


@pytest.mark.full
@pytest.mark.parametrize(
    "flaw",
    [
        (f"{CORE}/docs/second.md", "#a-place", "#no-place", "core/second.md:3: WARNING: "),
        pytest.param(
            (
                f"{CORE}/docs/first.md",
                "[below](#a-place)",
                "[below](#b)",
                "core/first.md:12: WARNING: ",
            ),
            marks=pytest.mark.full,
        ),
        pytest.param(
            (
                f"{CORE}/docs/second.md",
                "# Second",
                "# Second\n\n#### Deep",
                "Non-consecutive header",
            ),
            marks=pytest.mark.full,
        ),
    ],
)
def test_what_sphinx_warns_of_is_a_failure(
    repository: Path,
    tmp_path: Path,
    change: Callable[[str, str, str], None],
    flaw: tuple[str, str, str, str],
) -> None:
    *changed, problem = flaw
    change(*changed)
    done = run("build", "--root", str(repository), "--out", str(tmp_path / "site"))
    assert done.returncode == 1
    assert problem in done.stderr.replace("\\", "/")
    assert done.stderr.endswith("1 problem; nothing was written\n")
    assert not (tmp_path / "site").exists()


def test_what_is_no_site_is_not_replaced(repository: Path, tmp_path: Path) -> None:
    precious = tmp_path / "work" / "precious.txt"
    precious.parent.mkdir()
    precious.touch()
    with pytest.raises(DocsError, match="holds something that is no site"):
        build(repository, precious.parent)
    assert precious.exists()


def test_it_is_served_on_this_machine_only(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("here", "utf-8")
    with cli.server(tmp_path, 0) as server:
        assert server.server_address[0] == "127.0.0.1"
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/") as answer:
            assert answer.read() == b"here"
        thread.join()


# --- what a browser would see ---------------------------------------------------------------------

PAGE = """<html><head><link rel="stylesheet" href="site.css"></head><body>
<li class="toctree-l1"><a href="other.html#there">Other</a></li>
<a href="https://example.org/">outside</a> <img src="data:image/png;base64,AA==">
<p id="here"><a href="#here">here</a></p>
</body></html>
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text(PAGE, "utf-8")
    (tmp_path / "other.html").write_text('<p id="there" class="x">Other</p>', "utf-8")
    (tmp_path / "site.css").write_text("p { background: url(data:,x) }", "utf-8")
    return tmp_path


def test_a_good_site(site: Path) -> None:
    assert verify.site(site, ["index", "other"]) == []
    assert verify.described(site, {"other": ["there"]}) == ["other: does not describe other.there"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("site.css", "https://cdn.example/site.css", "loads https://cdn.example/site.css"),
        ("site.css", "//cdn.example/site.css", "loads //cdn.example/site.css"),
        ("data:image/png;base64,AA==", "http://x.example/a.png", "loads http://x.example/a.png"),
        ("<p id", "<script src='https://x.example/a.js'></script><p id", "loads https://x.ex"),
        ("<p id", "<script>import('https://x.example/a.js')</script><p id", "loads https://x.ex"),
        ("<p id", "<p style='background: url(//x.example/a.png)' id", "loads //x.example/a.png"),
        ("<p id", "<style>@import 'https://x.example/a.css'</style><p id", "loads https://x.ex"),
        ("<p id", "<img srcset='a.png 1x, https://x.example/b.png 2x'><p id", "loads https://x.ex"),
        ("<p id", "<iframe src='https://x.example/'></iframe><p id", "loads https://x.example/"),
        ("site.css", "lost.css", "leads to lost.css, which does not exist"),
        (
            "other.html#there",
            "other.html#gone",
            "other.html#gone, which has no such place",
        ),
        ("#here", "#gone", "leads to #gone, which has no such place"),
        ("toctree-l1", "no-item", "other: not in the navigation"),
    ],
)
def test_what_is_wrong_with_a_site(site: Path, old: str, new: str, problem: str) -> None:
    (site / "index.html").write_text(PAGE.replace(old, new, 1), "utf-8")
    found = verify.site(site, ["index", "other"])
    assert any(problem in each for each in found), found


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "x.css",
            "@font-face { src: url('https://f.example/f.woff2') }",
            "loads https://f.example",
        ),
        ("x.js", "fetch('https://x.example/track')", "loads https://x.example/track"),
        ("x.js", "// https://fine.example\nnew WebSocket(`wss://x.example`)", "loads wss://x.exam"),
        (
            "x.svg",
            "<svg><image href='https://x.example/a.png'/></svg>",
            "loads https://x.example/a",
        ),
    ],
)
def test_what_a_site_must_not_load(site: Path, name: str, text: str, problem: str) -> None:
    (site / name).write_text(text, "utf-8")
    found = verify.site(site, ["index", "other"])
    assert [problem in each for each in found] == [True]


def test_addresses_that_nobody_loads(site: Path) -> None:
    (site / "x.js").write_text("/* https://a.example */ n = 'http://www.w3.org/2000/svg'", "utf-8")
    (site / "x.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><g/></svg>", "utf-8")
    assert verify.site(site, ["index", "other"]) == []


# --- the real one ---------------------------------------------------------------------------------


@pytest.mark.full
def test_the_site_of_this_repository(tmp_path: Path) -> None:
    """Every public name is on a page, every page in the navigation, and nothing is fetched."""
    done = run("build", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    described = set[str]()
    for path in (tmp_path / "api").glob("*.html"):
        described |= verify.Document(path.read_text("utf-8")).ids
    assert public_names() - described == set()
    front = verify.Document((tmp_path / "index.html").read_text("utf-8"))
    wanted = {
        f"{path.parents[1].name.removeprefix('adk-fluent-')}/{path.stem}.html"
        for path in ROOT.glob("packages/*/docs/*.md")
    }
    assert wanted - set(front.navigation) == set()
    assert verify.site(tmp_path, []) == []


def public_names() -> set[str]:
    """The names in ``__all__`` of every module that no underscore hides, as Python has them."""
    found = set[str]()
    for source in ROOT.glob("packages/*/src"):
        for path in source.rglob("*.py"):
            parts = path.relative_to(source).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if not any(part.startswith("_") for part in module.split(".")):
                names = getattr(import_module(module), "__all__", ())
                found |= {f"{module}.{name}" for name in names}
    return found
