"""The rows of the service about conversations. operations.py explains rows, and has the others."""

from __future__ import annotations

from legion.jobs.context import Context
from legion.service import adoption
from legion.service.conversations import ask as asking
from legion.service.conversations import documents, reports
from legion.service.conversations.catalog import Catalog
from legion.service.shared.commit_signal import CommitSignal
from legion.wire.adoption import AdoptConversation, Adopted, HandedOff
from legion.wire.conversations import (
    Analytics,
    AskConversation,
    ConversationAnswer,
    ConversationHealth,
    Conversations,
    ExportedConversation,
    SearchResult,
)
from legion.wire.operations import Operations


class ConversationRows(Operations):
    context: Context
    _catalog: Catalog
    _news: CommitSignal

    def conversations(self, hours: float = 168.0, timeout: float = 0.0) -> Conversations:
        return self._catalog.listed(hours, timeout)

    def search_conversations(
        self, query: str, hours: float = 100_000.0, most: int = 20, timeout: float = 0.0
    ) -> SearchResult:
        return self._catalog.search(query, hours, most, timeout)

    def export_conversation(self, id: str = "", format: str = "md") -> ExportedConversation:
        return documents.export(self._catalog, id, format)

    def analytics(self, hours: float = 24.0, timeout: float = 0.0) -> Analytics:
        return reports.analytics(self._catalog, self.context.clock(), hours, timeout)

    def conversation_health(self, hours: float = 168.0, timeout: float = 0.0) -> ConversationHealth:
        return reports.health(self._catalog, self.context.clock(), hours, timeout)

    def ask_conversation(self, wanted: AskConversation, /) -> ConversationAnswer:
        return asking.ask(self.context, self._catalog, wanted)

    def adopt(self, wanted: AdoptConversation, /) -> Adopted:
        return adoption.adopt(self.context, self._catalog, wanted)

    def handoff(self, id: int, /) -> HandedOff:
        return adoption.handoff(self.context, self._news, id)
