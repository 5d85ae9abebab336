# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about conversations; `operations` explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Count, Hours, OpenTo, Seconds, Table, Text, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


class ConversationOperations(Table):
    """They are the person's alone: no agent reads what the person said elsewhere."""

    @operation("GET", "/v1/conversations", open_to=OpenTo.LOOKS, waits=True)
    def conversations(self, hours: Hours = 168.0, timeout: Seconds = 2.0) -> wire.conversations.Conversations:
        """Conversations of the person's agent programs and of Legion's runs, newest first"""

    @operation("GET", "/v1/conversations/search", open_to=OpenTo.LOOKS, waits=True)
    def search_conversations(
        self, query: Text, hours: Hours = 100_000.0, most: Count = 20, timeout: Seconds = 2.0
    ) -> wire.conversations.SearchResult:
        """Full-text search in conversations, newest first"""

    @operation("GET", "/v1/conversations/export", open_to=OpenTo.READ_ONLY | OpenTo.BROWSER, waits=True)
    def export_conversation(self, id: Text = "", format: Text = "md") -> wire.conversations.ExportedConversation:
        """One conversation as a document; without an id the last one"""

    @operation("GET", "/v1/conversations/analytics", open_to=OpenTo.LOOKS, waits=True)
    def analytics(self, hours: Hours = 24.0, timeout: Seconds = 2.0) -> wire.conversations.Analytics:
        """Sums over conversations, by program, project, model and day"""

    @operation("GET", "/v1/conversations/health", open_to=OpenTo.LOOKS, waits=True)
    def conversation_health(
        self, hours: Hours = 168.0, timeout: Seconds = 2.0
    ) -> wire.conversations.ConversationHealth:
        """Conversations that are stale, large, orphaned or damaged, and the space that they take"""

    @operation("POST", "/v1/conversations/ask", open_to=OpenTo.BROWSER, waits=True)
    def ask_conversation(self, wanted: wire.conversations.AskConversation, /) -> wire.conversations.ConversationAnswer:
        """Ask a finished conversation; a fork answers, and nothing changes"""

    @operation("POST", "/v1/conversations/adopt", open_to=OpenTo.BROWSER, created=True, waits=True)
    def adopt(self, wanted: wire.adoption.AdoptConversation, /) -> wire.adoption.Adopted:
        """Make a ticket of a conversation of the person's own Claude Code"""

    @operation("POST", "/v1/tickets/{id}/handoff", open_to=OpenTo.BROWSER, waits=True)
    def handoff(self, id: TicketId, /) -> wire.adoption.HandedOff:
        """Pause a ticket and give its conversation to the person's own program"""
