"""Files that go to the agents beside a message."""

from __future__ import annotations

import codecs
import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TYPED: Final = re.compile(
    r"((?:application|audio|font|image|message|model|multipart|text|video)/[a-z0-9.+_-]+):(.+)",
    re.IGNORECASE | re.DOTALL,
)
#: Kinds of files that are no text, under the names by which Gemini takes them.
#: Source: https://ai.google.dev/gemini-api/docs/file-input-methods and the pages on images, audio,
#: video and documents it leads to.
_MEDIA: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "wav": "audio/wav",
    "mp3": "audio/mp3",
    "aif": "audio/aiff",
    "aiff": "audio/aiff",
    "aac": "audio/aac",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/m4a",
    "opus": "audio/opus",
    "mp4": "video/mp4",
    "mpeg": "video/mpeg",
    "mpg": "video/mpg",
    "mov": "video/mov",
    "avi": "video/avi",
    "flv": "video/x-flv",
    "webm": "video/webm",
    "wmv": "video/wmv",
    "3gp": "video/3gpp",
    "pdf": "application/pdf",
}
_PDF: Final = "application/pdf"
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MB: Final = 1_000_000
#: Gemini takes requests of 100 MB, in which files are a third larger than on disk, and PDFs of 50.
_MOST: Final = 70 * _MB
_MOST_PDF: Final = 50 * _MB


class FileError(ValueError):
    """A file that cannot go to an agent, and why."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file, read.

    Attributes:
        name: As agents see it.
        type: Its MIME type.
        data: What is in it; text as UTF-8.
    """

    name: str
    type: str
    data: bytes

    def __str__(self) -> str:
        size = len(self.data)
        shown = f"{size / _MB:.1f} MB" if size >= _MB // 10 else f"{size} bytes"
        return f"{self.name}, {self.type}, {shown}"


def attached(spec: str, before: Iterable[Attachment] = ()) -> Attachment:
    """Read a file.

    Args:
        spec: Its path; or its MIME type, a colon, and its path.
        before: Other files of the same message.

    Raises:
        FileError: It cannot go to an agent.
    """
    typed = _TYPED.fullmatch(spec)
    type, given = (typed[1].lower(), typed[2]) if typed else (None, spec)
    path = Path(given).expanduser()
    room = _MOST - sum(len(each.data) for each in before)
    data = _read(path, given, room)
    name = path.name if path.is_absolute() else path.as_posix()
    name = name.encode(errors="replace").decode()  # it may hold bytes that are no text
    if type is None:
        return _told_by_itself(name, given, data)
    if type.startswith("text/"):
        return Attachment(name, type, _text(data, given, type).encode())
    return Attachment(name, type, _within(data, type, given))


def message_of(text: str | None, files: Sequence[Attachment]) -> Any:
    """What a pipeline is sent: the files in order, and then the text, as Gemini is asked best."""
    if not files:
        return text or ""
    from google.genai.types import Part  # slow to import

    # Text goes as text: every model reads it, while Gemini takes few of its many types inline.
    parts: list[Any] = [
        f"File {each.name}:\n\n{each.data.decode()}"
        if each.type.startswith("text/")
        else Part.from_bytes(data=each.data, mime_type=each.type)
        for each in files
    ]
    return [*parts, text] if text else parts


def _read(path: Path, given: str, room: int) -> bytes:
    try:
        found = path.stat()
        data = path.read_bytes() if S_ISREG(found.st_mode) and found.st_size <= room else b""
    except FileNotFoundError as error:
        raise FileError(f"There is no file {given}.") from error
    except (OSError, ValueError) as error:  # ValueError: it is no path at all
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{given} cannot be read: {reason}.") from error
    if S_ISDIR(found.st_mode):
        raise FileError(f"{given} is a directory; name a file in it.")
    if not S_ISREG(found.st_mode):
        raise FileError(f"{given} is no file that can be sent.")
    if found.st_size > room:
        raise FileError(_too_large(given, found.st_size, "all files of a message", _MOST))
    if not data:
        raise FileError(f"{given} is empty.")
    return data


def _told_by_itself(name: str, given: str, data: bytes) -> Attachment:
    """A file whose kind its name or what is in it tells."""
    type = _MEDIA.get(Path(name).suffix.lower().removeprefix("."))
    text = _decoded(data)
    if type is not None:
        if text is not None and not text.startswith("%PDF-"):
            raise FileError(
                f"{given} holds text, and is no {type}. As text it is text/plain:{given}"
            )
        return Attachment(name, type, _within(data, type, given))
    if text is not None:
        return Attachment(name, "text/plain", text.encode())
    guess = mimetypes.guess_type(name, strict=False)[0] or "application/octet-stream"
    if guess.startswith("text/"):
        _text(data, given, guess)
    raise FileError(
        f"{given} is no text, and of no type that Gemini is known to take: images (png, jpg, webp, "
        "heic), audio (mp3, wav, m4a, ogg, flac, ...), video (mp4, mov, webm, ...), pdf. Convert "
        f"it, or say what it is: TYPE/SUBTYPE:PATH, such as {guess}:{given}"
    )


def _within(data: bytes, type: str, given: str) -> bytes:
    if type == _PDF and len(data) > _MOST_PDF:
        raise FileError(_too_large(given, len(data), "a PDF", _MOST_PDF))
    return data


def _too_large(given: str, size: int, what: str, most: int) -> str:
    return (
        f"{given} is too large with {size / _MB:.1f} MB: Gemini takes {most // _MB} MB for {what}."
    )


def _text(data: bytes, given: str, type: str) -> str:
    text = _decoded(data)
    if text is None:
        raise FileError(f"{given} is no {type}: convert it to UTF-8.")
    return text


def _decoded(data: bytes) -> str | None:
    """The text that a file holds; None if it holds something else."""
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
