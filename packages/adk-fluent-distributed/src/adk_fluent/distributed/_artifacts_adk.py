# ruff: noqa: S608  # the statements are ours
"""ADK's artifacts in the tables of an engine's database."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService
from google.genai import types
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from adk_fluent.distributed._codecs import PREFIX
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from adk_fluent.distributed._database import Database

T = TypeVar("T")

_ALL: Final = "where app = :app and owner = :owner and session = :session"
_ONE: Final = f"{_ALL} and name = :name"
_SAVE: Final = text(
    "insert into adk_fluent_artifacts values"
    " (:app, :owner, :session, :name, :version, :part, :data, :now, :told)"
)
_NEXT: Final = text(f"select coalesce(max(version), -1) + 1 from adk_fluent_artifacts {_ONE}")
_VERSIONS: Final = text(
    f"select version, part, made, told from adk_fluent_artifacts {_ONE} order by version"
)
_LOAD: Final = text(f"select part, data from adk_fluent_artifacts {_ONE} and version = :version")
_LAST: Final = text(
    f"select part, data from adk_fluent_artifacts {_ONE} order by version desc limit 1"
)
_NAMES: Final = text(
    "select distinct name from adk_fluent_artifacts where app = :app and owner = :owner"
    " and session in ('', :session) and name not like :hidden order by name"
)
_DELETE: Final = text(f"delete from adk_fluent_artifacts {_ONE}")


class RunArtifacts(BaseArtifactService):
    """ADK's artifacts in the tables of an engine's database.

    Those whose names begin with ``user:``, or that are saved without a session, are the user's.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Keep another version of an artifact, and return its number; the first is 0.

        Raises:
            UsageError: The name is one of the engine's own.
        """
        if filename.startswith(PREFIX):
            raise UsageError(
                f"an artifact cannot be named {filename!r:.60}",
                help=f"the engine keeps large bytes under names with {PREFIX!r}: choose another",
            )
        part = types.Part.model_validate(artifact)
        blob, data = part.inline_data, None
        if blob is not None:
            data = blob.data or b""
            part = part.model_copy(update={"inline_data": blob.model_copy(update={"data": b""})})
        row: dict[str, Any] = {
            **_key(app_name, user_id, session_id, filename),
            "part": part.model_dump_json(exclude_none=True),
            "data": data,
            "now": time.time(),
            "told": json.dumps(custom_metadata or {}),
        }

        def save(db: Connection) -> int:
            version = db.execute(_NEXT, row).scalar_one()
            db.execute(_SAVE, {**row, "version": version})
            return version

        while True:
            try:
                return await self._do(save)
            except IntegrityError:  # somebody else took the number in the same moment
                continue

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """A version of an artifact, the last one without a number; None where there is none."""
        key = {**_key(app_name, user_id, session_id, filename), "version": version}
        row = await self._do(
            lambda db: db.execute(_LAST if version is None else _LOAD, key).first()
        )
        if row is None:
            return None
        part = types.Part.model_validate_json(row[0])
        if part.inline_data is not None:
            part.inline_data.data = bytes(row[1])
        return part

    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        """The names of a session's artifacts and of the user's; without a session, the user's."""
        key = {
            "app": app_name,
            "owner": user_id,
            "session": session_id or "",
            "hidden": f"{PREFIX}%",
        }
        return [name for (name,) in await self._do(lambda db: db.execute(_NAMES, key).all())]

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Remove all versions of an artifact."""
        key = _key(app_name, user_id, session_id, filename)
        await self._do(lambda db: db.execute(_DELETE, key))

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """The numbers of an artifact's versions."""
        rows = await self._rows(app_name, user_id, session_id, filename)
        return [row[0] for row in rows]

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """An artifact's versions."""
        rows = await self._rows(app_name, user_id, session_id, filename)
        name = f"{app_name}/{user_id}/{session_id or 'user'}/{filename}"
        return [
            ArtifactVersion(
                version=version,
                canonical_uri=f"adk-fluent://{name}/versions/{version}",
                mime_type=_mime_type(part),
                create_time=made,
                custom_metadata=json.loads(told),
            )
            for version, part, made, told in rows
        ]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """What is known of a version, the last one without a number; None where there is none."""
        found = await self.list_artifact_versions(
            app_name=app_name, user_id=user_id, filename=filename, session_id=session_id
        )
        fitting = [each for each in found if version in (None, each.version)]
        return fitting[-1] if fitting else None

    async def _rows(
        self, app: str, user: str, session: str | None, name: str
    ) -> list[tuple[int, str, float, str]]:
        key = _key(app, user, session, name)
        return await self._do(
            lambda db: [(v, p, m, t) for v, p, m, t in db.execute(_VERSIONS, key)]
        )

    async def _do(self, work: Callable[[Connection], T]) -> T:
        def transaction() -> T:
            with self._database.begin() as db:
                return work(db)

        return await asyncio.to_thread(transaction)


def _key(app: str, user: str, session: str | None, name: str) -> dict[str, Any]:
    shared = session is None or name.startswith("user:")
    return {"app": app, "owner": user, "session": "" if shared else session, "name": name}


def _mime_type(part: str) -> str | None:
    blob = types.Part.model_validate_json(part).inline_data
    return None if blob is None else blob.mime_type
