"""The tables as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, MetaData, Table, Text

from legion.domain.agents import Planning, Tier
from legion.domain.checks import Verdict
from legion.domain.decide import JobKind
from legion.domain.events import Kind
from legion.domain.liveness import Action
from legion.domain.mail import Delivery, Post
from legion.domain.projects import ConfigOrigin
from legion.domain.questions import Matter, Settler
from legion.domain.rules import Rule
from legion.domain.runs import Outcome
from legion.domain.teams import Part
from legion.domain.tickets import State
from legion.domain.wishes import Policy
from legion.store.columns import Flag, Json, Words, one_of

metadata = MetaData()

counters = Table("counters", metadata, Column("name", Text, primary_key=True), Column("value", Integer, nullable=False))

events = Table(
    "events",
    metadata,
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", one_of(Kind), nullable=False),
    Column("project", Integer),
    Column("ticket", Integer),
    Column("data", Json, nullable=False),
)

projects = Table(
    "projects",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("name", Words, nullable=False),
    Column("root", Words, nullable=False),
    Column("common_dir", Words, nullable=False),
    Column("branch", Words, nullable=False),
    Column("worktrees", Words, nullable=False),
    Column("paused", Flag, nullable=False),
    Column("config_text", Words, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("config_origin", one_of(ConfigOrigin), nullable=False),
    Column("target", Text, nullable=False),
    Column("baseline_commit", Text),
    Column("baseline_verdict", one_of(Verdict)),
    Column("person_tip", Text),
    Column("person_absorbed", Text),
    Column("person_refused", Text),
    Column("created_at", Double, nullable=False),
    Column("removed_at", Double),
)

trusted = Table(
    "trusted",
    metadata,
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("hash", Text, primary_key=True),
    Column("at", Double, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("request", Words, primary_key=True),
    Column("answer", Json, nullable=False),
    Column("at", Double, nullable=False),
)

tickets = Table(
    "tickets",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", one_of(State), nullable=False),
    Column("live", Flag, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("interrupted", Flag, nullable=False),
    Column("spared", Integer, nullable=False),
    Column("skipped", Integer, nullable=False),
    Column("title", Words, nullable=False),
    Column("after", Json, nullable=False),
    Column("checkpoint", Flag, nullable=False),
    Column("epic", Words, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("max_attempts", Integer, nullable=False),
    Column("driver", Words, nullable=False),
    Column("model", Words, nullable=False),
    Column("parked", Json),
    Column("base", Text),
    Column("plant", Text),
    Column("change_base", Text),
    Column("change_commit", Text),
    Column("landed", Text),
    Column("unchecked", Flag, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("moved_at", Double, nullable=False),
    Column("dropped_at", Double),
    Column("asks", Flag, nullable=False),
    Column("budget", Double),
    Column("dispatcher", Text, nullable=False),
    Column("tools", Json),
    Column("undoes", Integer),
    Column("review", one_of(Policy)),
    Column("files", Json, nullable=False),
    Column("proofs", Json, nullable=False),
    Column("bound", Json, nullable=False),
    Column("acceptance", Json, nullable=False),
    Column("climbs", Flag, nullable=False),
    Column("team", Words, nullable=False),
    Column("crew", Text, nullable=False),
    Column("labels", Json, nullable=False),
    Column("command", Words, nullable=False),
    Column("reason", Words, nullable=False),
    Column("feedback", Words, nullable=False),
)

wishes = Table(
    "wishes",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("text", Words, nullable=False),
    Column("context", Words, nullable=False),
    Column("criteria", Words, nullable=False),
    Column("plan", Words, nullable=False),
)

plans = Table(
    "plans",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("stage", one_of(Planning), nullable=False),
    Column("text", Words, nullable=False),
    Column("decided_by", Text, nullable=False),
    Column("decided_at", Double),
    Column("why", Words, nullable=False),
)

crews = Table(
    "crews",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("body", Json, nullable=False),
)

advice = Table(
    "advice",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("role", Text, primary_key=True),
    Column("run", Integer, nullable=False),
    Column("text", Words, nullable=False),
    Column("given_at", Double, nullable=False),
)

edges = Table(
    "edges",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("after", Integer, primary_key=True, autoincrement=False),
)

agents = Table(
    "agents",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("project", Integer, nullable=False),
    Column("parent", Text, nullable=False),
    Column("name", Words, nullable=False),
    Column("role", Words, nullable=False),
    Column("task", Words, nullable=False),
    Column("model", Words, nullable=False),
    Column("tools", Json),
    Column("budget", Double),
    Column("headcount", Integer),
    Column("depth", Integer),
    Column("tier", one_of(Tier), nullable=False),
    Column("base", Text),
    Column("owes", Flag, nullable=False),
    Column("held_until", Double),
    Column("held_why", Words, nullable=False),
    Column("hired_at", Double, nullable=False),
    Column("fired_at", Double),
    Column("plan", one_of(Planning), nullable=False),
    Column("leaving", Text, nullable=False),
    Column("hirer", Text, nullable=False),
    Column("delegates", Flag, nullable=False),
)

holdings = Table(
    "holdings",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),
    Column("agent", Text, nullable=False),
    Column("planted", Flag, nullable=False),
    Column("submitted", Flag, nullable=False),
    Column("since", Double, nullable=False),
)

mail = Table(
    "mail",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("sender", Text, nullable=False),
    Column("recipient", Text, nullable=False),
    Column("kind", one_of(Post), nullable=False),
    Column("text", Words, nullable=False),
    Column("sent_at", Double, nullable=False),
    Column("delivery", one_of(Delivery), nullable=False),
    Column("batch", Text, nullable=False),
    Column("heard_at", Double),
    Column("about", Text, nullable=False),
)

calls = Table(
    "calls",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("request", Words, primary_key=True),
    Column("answer", Json, nullable=False),
    Column("at", Double, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("ticket", Integer),
    Column("agent", Integer),
    Column("attempt", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("outcome", one_of(Outcome)),
    Column("detail", Words, nullable=False),
    Column("saved", Text),
    Column("conversation", Text, nullable=False),
    Column("access", Words, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("part", one_of(Part), nullable=False),
)

rewinds = Table(
    "rewinds",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("ticket", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("moment", Text, nullable=False),
    Column("run", Integer, nullable=False),
    Column("conversation", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("point", Text, nullable=False),
)

claims = Table(
    "claims",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("kind", one_of(JobKind), nullable=False),
    Column("subject", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("machine", Words, nullable=False),
    Column("until", Double),
    Column("active", Flag, nullable=False),
    Column("claimed_at", Double, nullable=False),
    Column("finished_at", Double),
)

receipts = Table(
    "receipts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("ticket", Integer),
    Column("name", Words, nullable=False),
    Column("command", Words, nullable=False),
    Column("commit_id", Text, nullable=False),
    Column("tree", Text, nullable=False),
    Column("verdict", one_of(Verdict), nullable=False),
    Column("exit_code", Integer),
    Column("duration", Double, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("tail", Words, nullable=False),
    Column("output", Words, nullable=False),
    Column("digest", Text, nullable=False),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("ticket", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("reader", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("base", Text, nullable=False),
    Column("commit_id", Text, nullable=False),
    Column("binding", Flag, nullable=False),
    Column("why", Words, nullable=False),
    Column("refused", Integer, nullable=False),
    Column("complaint", Words, nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("given_at", Double),
    Column("verdict", Json),
    Column("notes", Json, nullable=False),
)

landings = Table(
    "landings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("base", Text, nullable=False),
    Column("commit_id", Text, nullable=False),
    Column("tree", Text, nullable=False),
    Column("tickets", Json, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("landed", Flag),
)

usage = Table(
    "usage",
    metadata,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("provider", Words, primary_key=True),
    Column("model", Words, primary_key=True),
    Column("day", Text, primary_key=True),
    Column("requests", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("unpriced", Integer, nullable=False),
    Column("input", BigInteger, nullable=False),
    Column("output", BigInteger, nullable=False),
    Column("cache_read", BigInteger, nullable=False),
    Column("cache_write", BigInteger, nullable=False),
    Column("usd", Double, nullable=False),
    Column("seconds", Double, nullable=False),
)

readings = Table(
    "readings",
    metadata,
    Column("source", Text, primary_key=True),
    Column("file", Text, nullable=False),
    Column("place", BigInteger, nullable=False),
)

limits = Table(
    "limits",
    metadata,
    Column("provider", Words, primary_key=True),
    Column("at", Double, nullable=False),
    Column("status", Integer, nullable=False),
    Column("span", Words, nullable=False),
    Column("utilization", Double),
    Column("resets_at", Double),
)

questions = Table(
    "questions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("kind", one_of(Matter), nullable=False),
    Column("project", Integer, nullable=False),
    Column("agent", Text, nullable=False),
    Column("ticket", Integer),
    Column("run", Integer),
    Column("words", Words, nullable=False),
    Column("facts", Json, nullable=False),
    Column("choices", Json, nullable=False),
    Column("fallback", Words, nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("deadline", Double, nullable=False),
    Column("settled_at", Double),
    Column("settled_by", one_of(Settler)),
    Column("choice", Words, nullable=False),
    Column("why", Words, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("agent", Text, nullable=False),
    Column("ticket", Integer),
    Column("run", Integer, nullable=False),
    Column("issued_at", Double, nullable=False),
    Column("revoked_at", Double),
)

watches = Table(
    "watches",
    metadata,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("tree", Text, nullable=False),
    Column("tree_since", Integer, nullable=False),
    Column("tree_at", Double, nullable=False),
    Column("idle_since", Double),
    Column("cpu", Double, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("processes", Text, nullable=False),
)

helps = Table(
    "helps",
    metadata,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("action", one_of(Action), nullable=False),
    Column("rule", one_of(Rule), nullable=False),
    Column("sign", Words, nullable=False),
    Column("why", Words, nullable=False),
    Column("advice", Words, nullable=False),
    Column("message", Text, nullable=False),
    Column("after", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("taken_at", Double),
)
