"""Media: films and decks put together of many parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent import Agent, FanOut, Loop, Pipeline, Route, S, map_over, until
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

SCENES = StateFieldRef("scenes", list[str])
SLIDES = StateFieldRef("slides", list[str])
RATING = StateFieldRef("rating", int)


def cut(state: State) -> dict[str, Any]:
    """The clips as one film."""
    return {"film": " + ".join(state["clips"])}


def short_movie() -> Builder:
    """A story in scenes, each filmed on its own, cut, and filmed again until it is rated well."""
    story = Agent("story_writer").instruct("A story of {idea}, in scenes.").writes(SCENES)
    shoot = FanOut(
        "shoot",
        Agent("picture_maker").instruct("Film {scene}. Wanted: {wanted?}").writes("clip"),
        Agent("sound_maker").instruct("Sound for {scene}.").writes("sound"),
    )
    mix = S.merge("clip", "sound", into="scene_clip", fn=lambda clip, sound: f"{clip}/{sound}")
    film = map_over(
        "scenes", shoot >> mix, item_key="scene", output_key="clips", result_key="scene_clip"
    )
    rate = (
        Agent("critic")
        .instruct("Rate {film}, 1 to 5, and say what is wanted.")
        .writes(RATING, "wanted")
    )
    takes = Loop("takes", film, cut, rate, max=2).until(lambda s: s["rating"] > 3)
    show = Agent("presenter").instruct("Present {film}.")
    shelve = Agent("archivist").instruct("Shelve {film}: {wanted}")
    return (story >> takes >> Route("rating").gt(3, show).otherwise(shelve)).contract(
        inputs=["idea"], outputs=["film"]
    )


def save_picture(text: str, tool_context: Any) -> str:
    """Keep what was drawn."""
    tool_context.state["drawn"] = f"{text}.png"
    return "Kept."


def picture() -> Builder:
    """A tool draws, the next agent describes what it drew."""
    draw = (
        Agent("drawer")
        .instruct("Draw what the user says, in the style {app:house_style}.")
        .tool(save_picture)
        .writes("drawn", via="tool")
    )
    describe = Agent("describer").instruct("Describe {drawn} for those who cannot see it.")
    return (draw >> describe.writes("caption")).contract(
        inputs=["app:house_style"], outputs=["caption"]
    )


def slide_deck() -> Builder:
    """Slides made side by side, checked against the brand, the deck mended by what was found."""
    outline = Agent("deck_outliner").instruct("Slides on {topic}.").writes(SLIDES)
    make = Agent("slide_maker").instruct("Make the slide {slide}, in {brand}.")
    check = FanOut(
        "check",
        Agent("brand_checker").instruct("Does {deck} keep to {brand}?").writes("brand_note"),
        Agent("fact_checker").instruct("Are the facts right: {deck}").writes("fact_note"),
    )
    mend = Agent("deck_mender").instruct("Mend {deck}: {brand_note}, {fact_note}").writes("deck")
    faulty = Route().when(lambda s: (s["brand_note"], s["fact_note"]) != ("ok", "ok"), mend)
    rounds = Loop("rounds", check, faulty, max=3)
    rounds.until(lambda s: s["brand_note"] == "ok" and s["fact_note"] == "ok")
    return (
        outline
        >> map_over("slides", make, item_key="slide", output_key="deck", concurrency=2)
        >> rounds
        >> Agent("exporter").instruct("Export {deck}.")
    ).contract(inputs=["topic", "brand"], outputs=["deck"])


def podcast() -> Builder:
    """A dialogue of two hosts, until the producer has enough; then a title."""
    first = Agent("host").instruct("Ask about {theme}. So far: {talk?}").writes("talk")
    second = Agent("guest").instruct("Answer: {talk}").writes("talk")
    producer = Agent("producer").instruct("enough or more: {talk}").writes("producer_says")
    show = Pipeline("show", first, second, producer) * until(
        lambda s: s["producer_says"] == "enough", max=5
    )
    return (show >> Agent("titler").instruct("A title for {talk}").writes("title")).contract(
        inputs=["theme"], outputs=["talk", "title"]
    )


CASES: Final = (
    Case(
        name="short movie",
        source="google/adk-docs: docs/agents/workflow-agents/parallel-agents.md",
        pipeline=short_movie,
        state={"idea": "rain"},
        inputs=("idea",),
        replies={
            "story_writer": [data(scenes=["dawn", "dusk"])],
            "picture_maker": {"Film dawn": ["v1", "v3"], "Film dusk": ["v2", "v4"]},
            "sound_maker": {"for dawn": ["a1", "a3"], "for dusk": ["a2", "a4"]},
            "critic": [
                told("v1/a1 + v2/a2", says=data(rating=2, wanted="light")),
                data(rating=4, wanted=""),
            ],
            "presenter": [told("v3/a3 + v4/a4", says="Here it is.")],
        },
        text="Here it is.",
        after={"film": "v3/a3 + v4/a4"},
    ),
    Case(
        name="picture",
        source="google/adk-python: contributing/samples/generate_image/agent.py",
        pipeline=picture,
        message="A boat.",
        state={"app:house_style": "ink"},
        inputs=("app:house_style",),
        replies={
            "drawer": [Call("save_picture", {"text": "boat"}), told("style ink", says="Drawn.")],
            "describer": [told("boat.png", says="A boat in ink.")],
        },
        after={"caption": "A boat in ink."},
    ),
    Case(
        name="slide deck",
        source="google/adk-samples: python/agents/brand-aligned-presentations/"
        "presentation_agent/deployment/deploy.py",
        pipeline=slide_deck,
        state={"topic": "salt", "brand": "blue"},
        inputs=("topic", "brand"),
        replies={
            "deck_outliner": [data(slides=["one", "two"])],
            "slide_maker": {"slide one": ["1"], "slide two": ["2"]},
            "brand_checker": ["too red", "ok"],
            "fact_checker": ["ok", "ok"],
            "deck_mender": [told("too red", says="1, 2, in blue")],
            "exporter": [told("1, 2, in blue", says="deck.pdf")],
        },
        text="deck.pdf",
    ),
    Case(
        name="podcast",
        source="google/adk-docs: docs/agents/workflow-agents/sequential-agents.md",
        pipeline=podcast,
        state={"theme": "moss"},
        inputs=("theme",),
        replies={
            "host": ["What is moss?", told("So far: A plant.", says="Is it soft?")],
            "guest": ["A plant.", told("Is it soft?", says="Very.")],
            "producer": ["more", "enough"],
            "titler": ["Soft."],
        },
        after={"talk": "Very.", "title": "Soft."},
    ),
)
