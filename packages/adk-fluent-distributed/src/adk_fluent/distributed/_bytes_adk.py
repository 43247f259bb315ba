"""Large bytes of a content: kept once, as artifacts of the run."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from adk_fluent.distributed._codecs import LARGE, PREFIX
from adk_fluent.errors import SessionStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.genai import types
    from sqlalchemy import Connection

_KEEP: Final = text(
    "insert into adk_fluent_artifacts values"
    " (:app, :owner, :session, :name, 0, '{}', :data, :now, '{}') on conflict do nothing"
)
_KEPT: Final = text(
    "select data from adk_fluent_artifacts where app = :app and owner = :owner"
    " and session = :session and name = :name"
)


def take_out(content: types.Content) -> tuple[types.Content, dict[str, str], dict[str, bytes]]:
    """A content without large bytes.

    Returns:
        The content; the names of what was taken out, by the number of the part; and that, by name.
    """
    digests, found = dict[str, str](), dict[str, bytes]()
    parts = list(content.parts or ())
    for at, part in enumerate(parts):
        blob = part.inline_data
        if blob is None or blob.data is None or len(blob.data) <= LARGE:
            continue
        name = PREFIX + hashlib.sha256(blob.data).hexdigest()
        digests[str(at)], found[name] = name, blob.data
        empty = blob.model_copy(update={"data": b""})
        parts[at] = part.model_copy(update={"inline_data": empty})
    return (content.model_copy(update={"parts": parts}) if found else content), digests, found


def put_back(
    content: types.Content, names: Mapping[str, str], kept: Callable[[str], bytes]
) -> types.Content:
    """The content that `take_out` was given."""
    parts = list(content.parts or ())
    for at, name in names.items():
        part = parts[int(at)]
        assert part.inline_data is not None  # noqa: S101  # `take_out` left it there
        blob = part.inline_data.model_copy(update={"data": kept(name)})
        parts[int(at)] = part.model_copy(update={"inline_data": blob})
    return content.model_copy(update={"parts": parts})


def keep_bytes(db: Connection, key: Mapping[str, Any], found: Mapping[str, bytes]) -> None:
    """Keep bytes of a session as artifacts."""
    for name, data in found.items():
        db.execute(_KEEP, {**key, "name": name, "data": data, "now": time.time()})


def kept_bytes(db: Connection, key: Mapping[str, Any], name: str) -> bytes:
    """Bytes of a session.

    Raises:
        SessionStoreError: They are not there.
    """
    row = db.execute(_KEPT, {**key, "name": name}).first()
    if row is None:
        raise SessionStoreError(
            f"a large part of session {key['session']!r} is not there",
            found=f"artifact {name[:20]}... is missing",
            help="restore the database from a backup; nothing but the engine removes it",
        )
    return bytes(row[0])
