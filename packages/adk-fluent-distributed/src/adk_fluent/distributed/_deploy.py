"""What runs a pipeline's workers in containers: a Dockerfile, and a manifest for Kubernetes."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import distributions
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.distributed._errors import BoundaryError

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.cli import Target
    from adk_fluent.distributed._segments import Segment, SegmentPlan

#: The environment variable that names the segment of which a container runs calls.
CONTAINER: Final = "ADK_FLUENT_CONTAINER"
_SECRET: Final = "adk-fluent-database"  # noqa: S105  # the name of a Secret
_GRACE: Final = 15  # seconds between the end of draining and the end of the container
_LONGEST: Final = 50  # characters of a name, which Kubernetes adds to
_OURS: Final = ("adk-fluent-", "google-adk")


def files(
    plan: SegmentPlan, target: Target, *, image: str, concurrency: int, drain: int
) -> dict[str, str]:
    """The files that run the workers of a pipeline, by name.

    Each segment with ``isolation="container"`` gets a Deployment of its own, and one serves the
    others. The database is that of a Secret, which is not among the files.

    Args:
        plan: The pipeline's segments.
        target: Where the pipeline is; its folder is what the image holds.
        image: The image.
        concurrency: Calls of one segment at a time, where its boundary says nothing.
        drain: Seconds that calls get to come to their ends when a container is to end.

    Raises:
        BoundaryError: Two segments would have one name.
    """
    import yaml  # noqa: PLC0415  # DBOS brings it

    alone = [each for each in plan.segments if _is_contained(each)]
    shared = [each for each in plan.segments if not _is_contained(each)]
    groups = [*([shared] if shared else []), *([each] for each in alone)]
    own = [plan.name if each is shared else f"{plan.name}-{each[0].name}" for each in groups]
    names = [_named(each) for each in own]
    if len({*names}) < len(names):
        raise BoundaryError(
            "two Deployments would have one name",
            found=", ".join(names),
            help="give segments names that differ in letters or digits",
        )
    manifests = [
        _deployment(name, group, image=image, concurrency=concurrency, drain=drain)
        for name, group in zip(names, groups, strict=True)
    ]
    head = f"# kubectl create secret generic {_SECRET} --from-literal=url=postgresql://...\n"
    text = yaml.safe_dump_all(manifests, sort_keys=False)
    return {
        "Dockerfile": _dockerfile(target),
        "kubernetes.yaml": head + text,
    }


def write(folder: Path, made: dict[str, str]) -> list[Path]:
    """Write files into a folder, which is made if it is not there.

    Raises:
        FileExistsError: One is there, with another content: nothing is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        path = folder / name
        if path.exists() and path.read_text("utf-8") != text:
            raise FileExistsError(str(path))
    for name, text in made.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in made]


def _is_contained(segment: Segment) -> bool:
    return segment.boundary is not None and segment.boundary.isolation == "container"


def _deployment(
    name: str, group: list[Segment], *, image: str, concurrency: int, drain: int
) -> dict[str, Any]:
    scaling = [each.boundary.scaling for each in group if each.boundary is not None]
    given = [each for each in scaling if each is not None]
    most = min((each.max_instances for each in given), default=None)
    calls = max((each.concurrency for each in given), default=concurrency)
    args = [part for each in group for part in ("--segment", each.name)]
    args += ["--concurrency", str(calls), "--drain", str(drain)]
    database = {"secretKeyRef": {"name": _SECRET, "key": "url"}}
    environment: list[dict[str, Any]] = [{"name": "ADK_FLUENT_DATABASE", "valueFrom": database}]
    if len(group) == 1 and _is_contained(group[0]):
        environment.append({"name": CONTAINER, "value": group[0].name})
    container = {"name": "worker", "image": image, "args": args, "env": environment}
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "adk-fluent"}
    spec: dict[str, Any] = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "terminationGracePeriodSeconds": drain + _GRACE,
                "containers": [container],
            },
        },
    }
    if most is not None:  # one more than it may have would refuse to start
        spec["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    metadata: dict[str, Any] = {"name": name, "labels": labels}
    if most is not None:
        metadata["annotations"] = {"adk-fluent/max-instances": str(most)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _dockerfile(target: Target) -> str:
    source = target.source
    if target.is_file:
        source = source.replace("\\", "/").rpartition("/")[2]
    name = source if target.attribute is None else f"{source}:{target.attribute}"
    return f"""\
# docker build --file Dockerfile --tag IMAGE FOLDER, where FOLDER has {source} and what it needs;
# what it imports from elsewhere stands in its requirements.txt
FROM python:{sys.version_info.major}.{sys.version_info.minor}-slim
RUN pip install --no-cache-dir {" ".join(_required())} && useradd --system adk
WORKDIR /app
COPY . .
RUN if [ -f requirements.txt ]; then pip install --no-cache-dir --requirement requirements.txt; fi
USER adk
ENTRYPOINT ["adk-fluent", "worker", "{name}"]
"""


def _required() -> list[str]:
    """ADK and our wheels, in the versions that are installed here."""
    found = {each.metadata["Name"] or "": each.version for each in distributions()}
    plain = {name.lower().replace("_", "-"): version for name, version in found.items()}
    return [f"{name}=={plain[name]}" for name in sorted(plain) if name.startswith(_OURS)]


def _named(name: str) -> str:
    """A name as Kubernetes takes it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST].strip("-") or "pipeline"


def is_container_of(segment: str) -> bool:
    """Whether this process is the container of a segment."""
    return os.environ.get(CONTAINER) == segment
