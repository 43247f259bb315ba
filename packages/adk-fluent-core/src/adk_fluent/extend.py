"""What a layer needs of core in addition to its data (`ir`) and its protocols (`protocol`).

Every name is imported when it is first used, so importing this costs nothing; `ask_remote`,
`copy_events`, `give_output`, `initial_state`, `is_journal_key`, `kept_state`, `merges_dicts`,
`request_model`, `to_agent_event`, `write_state` and questions in a model's place are about ADK's
objects and import ADK. What commands need is in `adk_fluent.cli`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from adk_fluent._arguments import must_be, must_be_number, one_of
    from adk_fluent._caller import caller
    from adk_fluent._data_files import At, DataFile
    from adk_fluent._experiments import chosen_experiment
    from adk_fluent._file_locks import held_file
    from adk_fluent._lazy import lazy_names
    from adk_fluent._logs import LOG
    from adk_fluent._middlewares import (
        added_tools,
        find_middleware,
        middleware_everywhere,
        register_middleware,
        registered_middlewares,
        unregister_middleware,
    )
    from adk_fluent._pages import script_source
    from adk_fluent._prices import price_book, price_of
    from adk_fluent._registry import (
        LayerObject,
        layer_errors,
        provided,
        require_layer,
        resolve_name,
    )
    from adk_fluent._replays import REPLAYED
    from adk_fluent._texts import clean, environment_secrets, error_line, one_line, plural, shorten
    from adk_fluent._words import article, describe, is_loopback, public_address
    from adk_fluent._yaml_files import to_yaml_text
    from adk_fluent.backends._answers import Answer, answer_of
    from adk_fluent.backends._config import METADATA_KEY
    from adk_fluent.backends._owner import this_process
    from adk_fluent.backends._storable import StorageFault, storage_fault
    from adk_fluent.backends.adk._caps import merges_dicts
    from adk_fluent.backends.adk._hooks._calls import request_model
    from adk_fluent.backends.adk._hooks._remotes import ask_remote
    from adk_fluent.backends.adk._session._events import to_agent_event
    from adk_fluent.backends.adk._session._facts import give_output, report_end
    from adk_fluent.backends.adk._session._stamps import is_journal_key, kept_state
    from adk_fluent.backends.adk._waiting._copying import copy_events, initial_state, write_state
    from adk_fluent.backends.adk._waiting._in_place import (
        AnswerInPlace,
        answers_in_place,
        ask_in_place,
        ask_in_place_again,
        fail_in_place,
        refuse_in_place,
        report_refusal,
    )
    from adk_fluent.builders._execution import run_sync
    from adk_fluent.flow._current import (
        DURABLE_RUN,
        CurrentStep,
        DurableRun,
        current_step,
        effect_key,
    )
    from adk_fluent.flow._gates import answer_fault
    from adk_fluent.protocol._json import json_safe
    from adk_fluent.protocol._json_schema import schema_misfit
else:  # a type checker must see a misspelt name, not Any
    _PLACES: Final = {
        name: module
        for module, names in {
            "_arguments": "must_be must_be_number one_of",
            "_caller": "caller",
            "_data_files": "At DataFile",
            "_experiments": "chosen_experiment",
            "_file_locks": "held_file",
            "_lazy": "lazy_names",
            "_logs": "LOG",
            "_middlewares": "added_tools find_middleware middleware_everywhere register_middleware"
            " registered_middlewares unregister_middleware",
            "_pages": "script_source",
            "_prices": "price_book price_of",
            "_registry": "LayerObject layer_errors provided require_layer resolve_name",
            "_replays": "REPLAYED",
            "_texts": "clean environment_secrets error_line one_line plural shorten",
            "_words": "article describe is_loopback public_address",
            "_yaml_files": "to_yaml_text",
            "backends._answers": "Answer answer_of",
            "backends._config": "METADATA_KEY",
            "backends._owner": "this_process",
            "backends._storable": "StorageFault storage_fault",
            "backends.adk._caps": "merges_dicts",
            "backends.adk._hooks._calls": "request_model",
            "backends.adk._hooks._remotes": "ask_remote",
            "backends.adk._session._events": "to_agent_event",
            "backends.adk._session._facts": "give_output report_end",
            "backends.adk._session._stamps": "is_journal_key kept_state",
            "backends.adk._waiting._copying": "copy_events initial_state write_state",
            "backends.adk._waiting._in_place": "AnswerInPlace answers_in_place ask_in_place"
            " ask_in_place_again fail_in_place refuse_in_place report_refusal",
            "builders._execution": "run_sync",
            "flow._current": "CurrentStep DURABLE_RUN DurableRun current_step effect_key",
            "flow._gates": "answer_fault",
            "protocol._json": "json_safe",
            "protocol._json_schema": "schema_misfit",
        }.items()
        for name in names.split()
    }

    def __getattr__(name: str) -> object:
        if name.startswith("__"):  # the import system asks for a __path__ each time
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _PLACES:
            module = import_module(f"adk_fluent.{_PLACES[name]}")
            value = globals()[name] = getattr(module, name)
            return value
        from adk_fluent._registry import resolve_name  # noqa: PLC0415  # slow to import

        return resolve_name(name, __name__, __all__)


__all__ = [
    "DURABLE_RUN",
    "LOG",
    "METADATA_KEY",
    "REPLAYED",
    "Answer",
    "AnswerInPlace",
    "At",
    "CurrentStep",
    "DataFile",
    "DurableRun",
    "LayerObject",
    "StorageFault",
    "added_tools",
    "answer_fault",
    "answer_of",
    "answers_in_place",
    "article",
    "ask_in_place",
    "ask_in_place_again",
    "ask_remote",
    "caller",
    "chosen_experiment",
    "clean",
    "copy_events",
    "current_step",
    "describe",
    "effect_key",
    "environment_secrets",
    "error_line",
    "fail_in_place",
    "find_middleware",
    "give_output",
    "held_file",
    "initial_state",
    "is_journal_key",
    "is_loopback",
    "json_safe",
    "kept_state",
    "layer_errors",
    "lazy_names",
    "merges_dicts",
    "middleware_everywhere",
    "must_be",
    "must_be_number",
    "one_line",
    "one_of",
    "plural",
    "price_book",
    "price_of",
    "provided",
    "public_address",
    "refuse_in_place",
    "register_middleware",
    "registered_middlewares",
    "report_end",
    "report_refusal",
    "request_model",
    "require_layer",
    "resolve_name",
    "run_sync",
    "schema_misfit",
    "script_source",
    "shorten",
    "storage_fault",
    "this_process",
    "to_agent_event",
    "to_yaml_text",
    "unregister_middleware",
    "write_state",
]
