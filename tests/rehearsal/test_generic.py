"""The script for tickets that have none works for any briefing, attempt after attempt."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from legion.config.project import ProjectConfig
from legion.domain.tickets import Ticket, Wish
from legion.jobs.briefing import briefing
from legion.rehearsal import generic
from legion.rehearsal.log import Kind
from tests.rehearsal.program import Claude
