"""Every setting in force with its origin, for `legion config --explain`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from legion.config.files import user as users
from legion.config.files.project import ProjectConfig, flatten
from legion.config.files.user import UserConfig

DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class ExplainedSetting:
    key: str
    value: object
    """Plain data: numbers, texts and lists of texts."""
    origin: str


def explain(project: ProjectConfig | None, project_origin: str, user: UserConfig) -> list[ExplainedSetting]:
    """The project's settings first, then the person's. Outside a project there are only the latter."""
    rows: list[ExplainedSetting] = []
    if project is not None:
        rows += _rows(flatten(project), project.stated, project_origin)
    return rows + list(_rows(users.flatten(user), user.stated, user.origin))


def _rows(settings: Iterable[tuple[str, object]], stated: frozenset[str], origin: str) -> list[ExplainedSetting]:
    return [
        ExplainedSetting(key=key, value=value, origin=origin if key in stated else DEFAULT) for key, value in settings
    ]
