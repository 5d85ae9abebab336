"""Every setting in force with where it comes from, for `legion config --explain`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from legion.config import project as projects
from legion.config import user as users
from legion.config.project import ProjectConfig
from legion.config.user import UserConfig

DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class Setting:
    key: str
    value: object
    """Plain data: numbers, texts and lists of texts."""
    origin: str


def explain(project: ProjectConfig | None, project_origin: str, user: UserConfig) -> list[Setting]:
    """The project's settings first, then the person's. Outside a project there are only the latter."""
    rows: list[Setting] = []
    if project is not None:
        rows += _rows(projects.flatten(project), project.stated, project_origin)
    return rows + list(_rows(users.flatten(user), user.stated, user.origin))


def _rows(settings: Iterable[tuple[str, object]], stated: frozenset[str], origin: str) -> list[Setting]:
    return [Setting(key=key, value=value, origin=origin if key in stated else DEFAULT) for key, value in settings]
