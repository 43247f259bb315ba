"""The pytest plugin as other projects have it: found through its entry point."""

from __future__ import annotations

import os
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import dedent

import pytest

import adk_fluent

pytest_plugins = ["pytester"]

HERE = Path(__file__).parents[2]
FREE = (
    *("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    *("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"),
)
INI = """
[pytest]
filterwarnings = error
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""


class Project:
    """A project with tests; what it has installed is core."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester

    def run(self, tests: str, *options: str, alone: bool = False) -> pytest.RunResult:
        """Run tests here, which is quick, or alone in a process, where nothing is loaded yet."""
        self._pytester.makepyfile(test_it="from __future__ import annotations\n" + dedent(tests))
        run = self._pytester.runpytest_subprocess if alone else self._pytester.runpytest_inprocess
        return run("-q", "-p", "no:cacheprovider", *options)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in FREE:
        monkeypatch.delenv(name, raising=False)
    path = [str(Path(adk_fluent.__file__).parents[1])]
    if not entry_points(group="pytest11", name="adk_fluent"):  # core's sources are on the path only
        info = pytester.mkdir("site") / "adk_fluent_core-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: adk-fluent-core\nVersion: 0\n")
        (info / "entry_points.txt").write_text(
            "[pytest11]\nadk_fluent = adk_fluent.testing.pytest_plugin\n"
        )
        path.append(str(info.parent))
        pytester.syspathinsert(info.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    pytester.makeini(INI)
    return Project(pytester)


def test_the_wheel_declares_it() -> None:
    declared = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
    assert declared["entry-points"] == {
        "pytest11": {"adk_fluent": "adk_fluent.testing.pytest_plugin"}
    }


def test_who_does_not_use_it_loads_nothing_heavy(project: Project) -> None:
    done = project.run(
        """
        import sys

        def test_it() -> None:
            assert "adk_fluent.testing.pytest_plugin" in sys.modules
            heavy = {"google.adk", "google.genai", "pydantic", "httpx", "click", "http.server"}
            assert heavy.isdisjoint(sys.modules)
            own = {name for name in sys.modules if name.startswith("adk_fluent.testing")}
            assert own == {"adk_fluent.testing", "adk_fluent.testing.pytest_plugin"}
    """,
        alone=True,
    )
    done.assert_outcomes(passed=1)


def test_its_fixtures_are_told_of(project: Project) -> None:
    done = project.run("", "--fixtures")
    done.stdout.fnmatch_lines(
        [
            "mock_backend -- *",
            "*A backend whose agents answer what*",
            "agent_harness -- *",
            "check_contracts -- *",
            "*`assert_contracts`: *",
            "gemini_emulator -- *",
            "*The Gemini REST API on loopback;*",
        ]
    )


def test_it_can_be_left_out(project: Project) -> None:
    done = project.run("def test_it(mock_backend): ...", "-p", "no:adk_fluent")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*fixture 'mock_backend' not found*"])


def test_pipelines_without_adk(project: Project) -> None:
    done = project.run("""
        from adk_fluent import Agent

        PIPELINE = Agent("a").writes("k") >> Agent("b")

        async def test_one(mock_backend, agent_harness) -> None:
            mock_backend.when("a").responds("x")
            mock_backend.when("b").given(prompt_contains="x").responds("y")
            harness = agent_harness(PIPELINE, backend=mock_backend)
            result = await harness.send("Hi.")
            assert (result.final_text, result.state) == ("y", {"k": "x"})

        def test_another(mock_backend, agent_harness) -> None:
            assert mock_backend.calls == ()
            mock_backend.when("a").responds("1")
            mock_backend.when("b").responds("2")
            assert agent_harness(PIPELINE, backend=mock_backend).send_sync("Hi.").text == "2"
    """)
    done.assert_outcomes(passed=2)


BROKEN = """
    from adk_fluent import Agent

    GOOD = Agent("draft").writes("text") >> Agent("polish").instruct("Polish: {text}")
    BAD = Agent("reply").instruct("One.") >> Agent("reply").instruct("Two.")
    MILD = Agent("draft").writes("user:text") // Agent("backup").instruct("Sorry.")
    READS = Agent("reply").instruct("Answer {question}.")
"""


def test_a_pipeline_keeps_its_contracts(project: Project) -> None:
    tests = """
    def test_good(check_contracts) -> None:
        report = check_contracts(GOOD)
        assert report.ok
        assert check_contracts(GOOD.to_ir()) == report
        assert [each.code for each in check_contracts(MILD).warnings] == ["FLW132"]
        check_contracts(READS, inputs=["question"])
        check_contracts(BAD, severity={"FLW102": "info"})

    def test_bad(check_contracts) -> None:
        check_contracts(BAD)

    def test_strict(check_contracts) -> None:
        check_contracts(MILD, strict=True)

    def test_without_inputs(check_contracts) -> None:
        check_contracts(READS)

    def test_other_outputs(check_contracts) -> None:
        check_contracts(GOOD, outputs=["summary"])

    def test_no_pipeline(check_contracts) -> None:
        check_contracts(42)
    """
    done = project.run(dedent(BROKEN) + dedent(tests))
    done.assert_outcomes(passed=1, failed=5)
    done.stdout.fnmatch_lines(
        [
            "*_ test_bad _*",
            "error[[]FLW102]: two different agents are called `reply`",
            " --> test_it.py:6",
            '6 | BAD = Agent("reply")*',
            "Found 1 error.",
            "*_ test_strict _*",
            "error[[]FLW132]: *",
            "*_ test_without_inputs _*",
            "error[[]FLW001]: *",
            "*_ test_other_outputs _*",
            "error[[]FLW001]: *",
            "*UsageError: only a pipeline can be checked*",
        ]
    )
    done.stdout.no_fnmatch_line("*_contracts.py*fail*")


@pytest.fixture
def shop(pytester: pytest.Pytester) -> None:
    """A module of pipelines and of parts of them."""
    pytester.makepyfile(
        shop="""
        from adk_fluent import Agent, Route
        from adk_fluent.ir import AgentNode

        classify = Agent("classify").instruct("One word.").writes("topic")
        billing = Agent("billing").instruct("Answer {question} about {topic}.")
        desk = (
            classify >> Route("topic").eq("billing", billing).otherwise(Agent("other"))
        ).contract(inputs=["question"])
        twice = Agent("reply").instruct("One.") >> Agent("reply").instruct("Two.")
        node = AgentNode("alone")
        _private = twice >> Agent("reply").instruct("Three.")
        number = 42
        kind = Agent
        """
    )


@pytest.mark.usefixtures("shop")
class TestModules:
    def test_each_pipeline_has_a_test(self, project: Project) -> None:
        done = project.run(
            """
            from adk_fluent.testing import contract_tests

            test_pipelines = contract_tests("shop")
            """,
            "-vv",
        )
        done.assert_outcomes(passed=2, failed=1)
        done.stdout.fnmatch_lines(
            [
                "test_it.py::test_pipelines[[]desk] PASSED*",
                "test_it.py::test_pipelines[[]twice] FAILED*",
                "test_it.py::test_pipelines[[]node] PASSED*",
                "error[[]FLW102]: two different agents are called `reply`",
                "*shop.py:9*",
            ]
        )
        done.stdout.no_fnmatch_line("*test_pipelines[[]billing*")

    def test_options_are_for_all(self, project: Project) -> None:
        done = project.run("""
            import shop
            from adk_fluent.testing import contract_tests

            test_rest = contract_tests(shop, skip=["twice"], strict=True)
            test_mild = contract_tests(shop, severity={"FLW102": "warning"})
            test_strict = contract_tests(
                shop, severity={"FLW102": "warning", "FLW001": "warning"}, outputs=["summary"]
            )
            test_outputs = contract_tests(shop, skip=["twice"], outputs=["summary"])
            """)
        done.assert_outcomes(passed=2 + 3 + 3, failed=2)
        done.stdout.fnmatch_lines(["FAILED test_it.py::test_outputs[[]desk]*"])

    @pytest.mark.parametrize(
        ("call", "says"),
        [
            ("contract_tests('shop', skip=['twise'])", "module 'shop' has no pipeline 'twise'"),
            ("contract_tests('json')", "module 'json' has no pipeline to test"),
            (
                "contract_tests('shop', skip=['desk', 'twice', 'node'])",
                "module 'shop' has no pipeline to test",
            ),
            ("contract_tests('shopp')", "No module named 'shopp'"),
        ],
    )
    def test_a_mistake_is_told_when_tests_are_collected(
        self, project: Project, call: str, says: str
    ) -> None:
        done = project.run(f"from adk_fluent.testing import contract_tests\ntest_it = {call}\n")
        done.assert_outcomes(errors=1)
        done.stdout.fnmatch_lines([f"*{says}*"])

    def test_what_is_not_complete_fails_its_test_and_no_other(
        self, project: Project, pytester: pytest.Pytester
    ) -> None:
        pytester.makepyfile(
            parts="""
            from adk_fluent import Agent, Pipeline

            empty = Pipeline("empty")
            whole = Agent("a") >> Agent("b")
            """
        )
        done = project.run("""
            from adk_fluent.testing import contract_tests

            test_parts = contract_tests("parts")
            """)
        done.assert_outcomes(passed=1, failed=1)
        done.stdout.fnmatch_lines(["*BuildError: *", "FAILED test_it.py::test_parts[[]empty]*"])


def test_the_function_of_the_same_name_gives_what_is_found() -> None:
    from adk_fluent import Agent
    from adk_fluent.testing import check_contracts

    found = check_contracts(Agent("reply").instruct("Answer {question}."))
    assert [each.code for each in found] == ["FLW001"]


ASK = """
    import json, os, urllib.request

    def ask(text="hi") -> str:
        base = os.environ["GOOGLE_GEMINI_BASE_URL"]
        url = f"{base}/v1beta/models/gemini-2.5-flash:generateContent"
        body = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(url, json.dumps(body).encode())) as response:
            return json.load(response)["candidates"][0]["content"]["parts"][0]["text"]
"""


def test_every_test_has_an_emulator_of_its_own_at_the_same_address(project: Project) -> None:
    tests = """
    from adk_fluent.testing import Script

    URLS = set()

    def test_one(gemini_emulator) -> None:
        gemini_emulator.script = Script("one")
        assert ask() == "one"
        assert gemini_emulator.env.items() <= os.environ.items()
        URLS.add(gemini_emulator.url)

    def test_between() -> None:
        assert "GOOGLE_GEMINI_BASE_URL" not in os.environ
        assert "GOOGLE_API_KEY" not in os.environ

    def test_another(gemini_emulator) -> None:
        assert gemini_emulator.requests == ()
        gemini_emulator.script = Script(default="other")
        assert ask() == "other"
        assert URLS == {gemini_emulator.url}

    def test_a_third(gemini_emulator) -> None:
        assert gemini_emulator.requests == ()
    """
    project.run(dedent(ASK) + dedent(tests)).assert_outcomes(passed=4)


def test_an_address_that_is_taken_is_replaced(project: Project) -> None:
    tests = """
    import socket

    TAKEN = []

    def test_one(gemini_emulator) -> None:
        TAKEN.append(int(gemini_emulator.url.rpartition(":")[2]))

    def test_another(request) -> None:
        with socket.create_server(("127.0.0.1", TAKEN[0])):
            assert request.getfixturevalue("gemini_emulator").url.rpartition(":")[2] != TAKEN[0]
    """
    project.run(tests).assert_outcomes(passed=2)


def test_a_prompt_that_nothing_answers_fails_the_test(project: Project) -> None:
    tests = """
    import contextlib, urllib.error

    def test_it(gemini_emulator) -> None:
        with contextlib.suppress(urllib.error.HTTPError):
            ask("where is my parcel?")

    def test_the_next_one(gemini_emulator) -> None:
        assert gemini_emulator.failures == ()
    """
    done = project.run(dedent(ASK) + dedent(tests))
    done.assert_outcomes(passed=2, errors=1)
    done.stdout.fnmatch_lines(["*ScriptExhaustedError: the script has no reply for call 1*"])
    done.stdout.fnmatch_lines(["*where is my parcel?*"])


def test_a_project_may_have_fixtures_of_these_names(
    project: Project, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("""
        import pytest
        from adk_fluent.testing import Script

        @pytest.fixture
        def mock_backend():
            return 42

        @pytest.fixture
        def gemini_emulator(gemini_emulator):
            gemini_emulator.script = Script(default="scripted")
            return gemini_emulator
    """)
    tests = """
    def test_it(mock_backend, gemini_emulator) -> None:
        assert (mock_backend, ask()) == (42, "scripted")
    """
    project.run(dedent(ASK) + dedent(tests)).assert_outcomes(passed=1)


@pytest.mark.adk
def test_a_pipeline_that_outlives_a_test_finds_the_next_emulator(project: Project) -> None:
    done = project.run(
        """
        import pytest
        from adk_fluent import Agent
        from adk_fluent.testing import Call, Script

        def double(number: int) -> int:
            "Double a number."
            return 2 * number

        PIPELINE = Agent("a", "gemini-2.5-flash").instruct("Double.").tool(double)

        @pytest.mark.parametrize("number", [1, 2, 3])
        async def test_it(gemini_emulator, agent_harness, number) -> None:
            gemini_emulator.script = Script(Call("double", {"number": number}), "done")
            assert await PIPELINE.ask_async("Go.") == "done"
            [_, second] = gemini_emulator.of(agent="a", model="gemini-2.5-flash")
            assert second.results[0]["response"] == {"result": 2 * number}
            gemini_emulator.script = Script("again")
            assert (await agent_harness(PIPELINE).send("Go.")).text == "again"
        """,
        *("-W", "ignore:[EXPERIMENTAL]:UserWarning"),  # pytest takes it literally
        *("-W", r"ignore::DeprecationWarning"),
        *("-W", "ignore::PendingDeprecationWarning"),
        alone=True,
    )
    done.assert_outcomes(passed=3)
