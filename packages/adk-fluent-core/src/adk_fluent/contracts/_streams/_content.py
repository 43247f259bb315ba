"""Content: what agents declare to take and give, what carries it, and what their models can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.contracts._reports._diagnostic import Related, Severity
from adk_fluent.contracts._reports._issues import (
    MissingOutputSchema,
    ModalityMismatch,
    OversizedContent,
    UnrequestedModality,
    UnsupportedModality,
)
from adk_fluent.contracts._streams._channels import Channels, content_of
from adk_fluent.contracts._streams._edges import gives_data
from adk_fluent.contracts._streams._models import TEXTUAL, capabilities_of, models_of
from adk_fluent.contracts._subject import graph_of
from adk_fluent.ir import AgentNode, ContentSpec, MapOverNode, Modality, Ref, RemoteAgentNode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.contracts._streams._channels import Kinds
    from adk_fluent.contracts._streams._models import ModelCapabilities
    from adk_fluent.contracts._subject import Checkable
    from adk_fluent.ir import Node

_WORDS: Final = {
    Modality.TEXT: "text",
    Modality.IMAGE: "images",
    Modality.AUDIO: "audio",
    Modality.VIDEO: "video",
    Modality.PDF: "PDF files",
    Modality.STRUCTURED: "structured data",
    Modality.CODE: "code",
}
_ORDER: Final = {kind: at for at, kind in enumerate(Modality)}
#: What a model is asked for by `response_modalities`.
_ASKED: Final = frozenset({Modality.TEXT, Modality.IMAGE, Modality.AUDIO, Modality.VIDEO})
_LISTED: Final = 3


def check_modality_contracts(pipeline: Checkable) -> list[Diagnostic]:
    """Check that what agents declare to give can be taken where it arrives (spec section 7.3).

    Args:
        pipeline: A builder, a node, or the graph that a checker is given.

    Returns:
        The findings ``FLW301`` to ``FLW305``. Agents that declare nothing have none, nor do models
        that `register_model_capabilities` and our own table do not know.

    Raises:
        UsageError: It is no pipeline.
    """
    graph = graph_of(pipeline)
    agents = graph.of(AgentNode)
    remote = graph.of(RemoteAgentNode)
    if all(content_of(each) is None for each in (*agents, *remote)):
        return []
    return list(_Check(graph).findings(agents, remote))


class _Check:
    """One check of a pipeline in which somebody declares content."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._channels = Channels(graph)

    def findings(
        self, agents: Iterable[AgentNode], remote: Iterable[RemoteAgentNode]
    ) -> Iterator[Diagnostic]:
        """Everything that is wrong with it."""
        for agent in agents:
            yield from self._hearing(agent)
            yield from self._tools(agent)
            if (content := content_of(agent)) is not None:
                yield from self._kept(agent, content)
                yield from self._model(agent, content)
                yield from self._requested(agent, content)
                yield from self._schema(agent, content)
                yield from self._sizes(agent, content)
        for each in remote:
            if (content := content_of(each)) is not None:
                last = self._channels.heard(each).last
                yield from self._mismatch(each, content.input_modalities, last, {})
        for node in self._graph.of(MapOverNode):
            yield from self._results(node)

    # --- what arrives ----------------------------------------------------------------------------

    def _hearing(self, agent: AgentNode) -> Iterator[Diagnostic]:
        content = content_of(agent)
        if agent.history == "none" and content is not None:
            yield from self._deaf(agent, content)
        if agent.history in ("own", "none"):
            return
        heard = self._channels.heard(agent)
        media = heard.media if agent.history == "transcript" else {}
        if content is not None:
            yield from self._mismatch(agent, content.input_modalities, heard.last, media)
            return
        for model in models_of(agent, self._graph.root):
            known = capabilities_of(model)
            if known is not None:
                last = {kind: by for kind, by in heard.last.items() if kind not in TEXTUAL}
                yield from self._mismatch(agent, known.inputs, last, media, model)
                return

    def _mismatch(
        self,
        node: Node,
        takes: Collection[Modality],
        last: Kinds,
        media: Kinds,
        model: str | None = None,
    ) -> Iterator[Diagnostic]:
        """A finding if something arrives that a step, or the model it runs on, does not take."""
        wrong = {
            kind: by
            for kind, by in {**media, **last}.items()
            if by is not node and not _takes(takes, kind)
        }
        if not wrong:
            return
        kinds = _sorted(wrong)
        first = wrong[kinds[0]]
        who = f"`{node.name}`" if model is None else f"`{node.name}` runs on {model}, which"
        given = _listed(kind for kind in kinds if wrong[kind] is first)
        others = {id(wrong[k]): wrong[k] for k in kinds if wrong[k] is not first}.values()
        accept = ", ".join(repr(each) for each in _sorted({*takes, *kinds}))
        way_out = "choose another model" if model else f"`{node.name}`.accepts({accept})"
        if isinstance(node, AgentNode) and any(kind not in TEXTUAL for kind in kinds):
            way_out += ', or .history("own"), so that it does not see it'
        yield ModalityMismatch.at(
            self._graph,
            node,
            f"{who} takes {_listed(takes)}, "
            f"and `{first.name}`, whose output it sees, gives {given}",
            severity=Severity.WARNING if model else self._severity(node, takes, kinds),
            related=[
                Related.at(by, f"`{by.name}` is here") for by in (first, *list(others)[:_LISTED])
            ],
            help=way_out,
        )

    def _severity(
        self, node: Node, takes: Collection[Modality], wrong: Collection[Modality]
    ) -> Severity:
        """An error, unless what arrives is text, or nothing but text is declared and more works.

        Text alone is also what those declare who have only said what they give.
        """
        media = {kind for kind in wrong if kind not in TEXTUAL}
        known = self._capabilities(node) if isinstance(node, AgentNode) else None
        works = set(takes) == {Modality.TEXT} and known is not None and media <= known.inputs
        return Severity.ERROR if media and not works else Severity.WARNING

    def _deaf(self, agent: AgentNode, content: ContentSpec) -> Iterator[Diagnostic]:
        kinds = [kind for kind in _sorted(content.input_modalities) if kind not in TEXTUAL]
        own_ways = agent.tools or agent.callbacks or isinstance(agent.instruction, Ref)
        if kinds and not own_ways and not isinstance(agent.static_instruction, Ref):
            yield ModalityMismatch.at(
                self._graph,
                agent,
                f"`{agent.name}` takes {_listed(kinds)}, and with history 'none' it sees nothing "
                "but its instruction, which is text",
                severity=Severity.WARNING,
                help='use .history("own") for what the user sends, '
                'or .history("input") for the output of the step before it',
            )

    # --- what carries text alone -----------------------------------------------------------------

    def _kept(self, agent: AgentNode, content: ContentSpec) -> Iterator[Diagnostic]:
        kinds = content.output_modalities
        if agent.writes_keys and not TEXTUAL & set(kinds):
            key = agent.writes_keys[0].key
            yield ModalityMismatch.at(
                self._graph,
                agent,
                f"`{agent.name}` gives {_listed(kinds)}, and writes `{key}`: "
                "a state key takes the text of an answer, and there is none",
                severity=Severity.ERROR,
                help="leave .writes(...) out: later agents see it in the conversation; "
                "or save it as an artifact and write its name",
            )

    def _tools(self, boss: AgentNode) -> Iterator[Diagnostic]:
        for tool in boss.agent_tools:
            last = self._channels.last(tool)
            lost = [kind for kind in _sorted(last) if kind not in TEXTUAL]
            if lost:
                by = last[lost[0]]
                yield ModalityMismatch.at(
                    self._graph,
                    by,
                    f"`{by.name}` gives {_listed(lost)}, and as a tool of `{boss.name}` "
                    "it hands back text alone",
                    severity=Severity.WARNING if TEXTUAL & set(last) else Severity.ERROR,
                    related=[Related.at(boss, f"`{boss.name}` calls it here")],
                    help="make it a step or a delegate, whose output stays in the conversation; "
                    "or save it as an artifact and answer with its name",
                )

    def _results(self, node: MapOverNode) -> Iterator[Diagnostic]:
        last = self._channels.last(node.body)
        if node.result_key is None and last and not TEXTUAL & set(last):
            yield ModalityMismatch.at(
                self._graph,
                node,
                f"`{node.name}` collects the texts of its items, and "
                f"`{last[_sorted(last)[0]].name}` gives {_listed(last)}",
                severity=Severity.WARNING,
                help="save each item as an artifact, and collect the names with result_key=",
            )

    # --- what a model can do ---------------------------------------------------------------------

    def _model(self, agent: AgentNode, content: ContentSpec) -> Iterator[Diagnostic]:
        for model in models_of(agent, self._graph.root):
            known = capabilities_of(model)
            if known is None:
                continue
            for verb, declared, can in (
                ("takes", content.input_modalities, known.inputs),
                ("gives", content.output_modalities, known.outputs),
            ):
                wrong = [k for k in _sorted(declared) if k not in can and k not in TEXTUAL]
                if wrong:
                    yield UnsupportedModality.at(
                        self._graph,
                        agent,
                        f"`{agent.name}` {verb} {_listed(wrong)}, and its model {model} "
                        f"{verb} {_listed(can)}",
                        help=f"choose a model that {verb} {_listed(wrong)}; if this one does, "
                        f'register_model_capabilities("{model}", ...) says so',
                    )
                    return

    def _requested(self, agent: AgentNode, content: ContentSpec) -> Iterator[Diagnostic]:
        asked = _setting(agent, "response_modalities")
        wanted = _ASKED & {
            Modality.TEXT if kind in TEXTUAL else kind for kind in content.output_modalities
        }
        if asked:
            names = {str(getattr(each, "value", each)).upper() for each in asked}
            missing = [kind for kind in _sorted(wanted) if kind.name not in names]
            what = f"asks its model for {', '.join(sorted(names))} alone"
        else:
            known = self._capabilities(agent)
            missing = [
                kind
                for kind in _sorted(wanted)
                if known is not None and kind in known.outputs and kind not in known.unasked
            ]
            names = set[str]()
            what = "does not ask its model for it"
        if missing:
            needed = sorted({*names, *(kind.name for kind in wanted)})
            listed = ", ".join(f'"{each}"' for each in needed)
            yield UnrequestedModality.at(
                self._graph,
                agent,
                f"`{agent.name}` gives {_listed(missing)}, and {what}",
                help=".generate_content_config(GenerateContentConfig("
                f"response_modalities=[{listed}]))",
            )

    def _capabilities(self, agent: AgentNode) -> ModelCapabilities | None:
        known = [capabilities_of(model) for model in models_of(agent, self._graph.root)]
        return next((each for each in known if each is not None), None)

    def _schema(self, agent: AgentNode, content: ContentSpec) -> Iterator[Diagnostic]:
        if Modality.STRUCTURED not in content.output_modalities or gives_data(agent):
            return
        if agent.produces_type is not None or any(
            _setting(agent, each) for each in ("response_schema", "response_json_schema")
        ):
            return
        yield MissingOutputSchema.at(
            self._graph,
            agent,
            f"`{agent.name}` gives structured data, and nothing says which",
            help=f"`{agent.name}` @ Schema, or .output_schema(Schema)",
        )

    # --- how much --------------------------------------------------------------------------------

    def _sizes(self, agent: AgentNode, content: ContentSpec) -> Iterator[Diagnostic]:
        most_in, most_out = content.max_input_tokens, content.max_output_tokens
        for model in models_of(agent, self._graph.root):
            known = capabilities_of(model)
            if known is None:
                continue
            for verb, most, limit in (
                ("takes", most_in, known.max_input_tokens),
                ("gives", most_out, known.max_output_tokens),
            ):
                if _is_more(most, limit):
                    yield self._oversized(
                        agent,
                        f"`{agent.name}` {verb} up to {most:,} tokens, "
                        f"and its model {model} {limit:,}",
                        f"declare {limit:,} tokens at most, or choose a model of that size",
                    )
        limit = _setting(agent, "max_output_tokens")
        if _is_more(limit, most_out):
            yield self._oversized(
                agent,
                f"`{agent.name}` gives up to {most_out:,} tokens, and its model may give {limit:,}",
                f"set max_output_tokens={most_out} in its generate_content_config",
            )
        if agent.history in ("transcript", "input"):
            yield from self._overflow(agent, most_in)

    def _overflow(self, agent: AgentNode, most: int | None) -> Iterator[Diagnostic]:
        last = self._channels.heard(agent).last
        for by in {id(last[kind]): last[kind] for kind in _sorted(last)}.values():
            content = getattr(by, "content", None)
            gives = content.max_output_tokens if isinstance(content, ContentSpec) else None
            if _is_more(gives, most) and by is not agent:
                yield self._oversized(
                    agent,
                    f"`{agent.name}` takes {most:,} tokens, and `{by.name}` before it "
                    f"gives up to {gives:,}",
                    "let one take more or the other give less, or shorten what is between them",
                    Related.at(by, f"`{by.name}` is here"),
                )

    def _oversized(
        self, agent: AgentNode, message: str, help: str, *related: Related
    ) -> Diagnostic:
        return OversizedContent.at(self._graph, agent, message, related=related, help=help)


def _is_more(number: object, limit: object) -> bool:
    return isinstance(number, int) and isinstance(limit, int) and number > limit


def _takes(takes: Collection[Modality], kind: Modality) -> bool:
    return kind in takes or (kind in TEXTUAL and Modality.TEXT in takes)


def _setting(agent: AgentNode, name: str) -> Any:
    """A field of its generate_content_config; None when it is not set."""
    config: object = dict(agent.settings).get("generate_content_config")
    if isinstance(config, Ref):
        config = config.value
    if isinstance(config, Mapping):
        return cast("Mapping[str, Any]", config).get(name)
    return getattr(config, name, None)


def _sorted(kinds: Iterable[Modality]) -> list[Modality]:
    """In the order in which `Modality` lists them."""
    return sorted(kinds, key=_ORDER.__getitem__)


def _listed(kinds: Iterable[Modality]) -> str:
    """In words: "text, images and audio"."""
    words = [_WORDS[kind] for kind in _sorted(kinds)] or ["nothing"]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
