"""Words that both of OpenAI's APIs use, for what the inner form knows."""

from __future__ import annotations

from legion.gateway.dialects.messages import Effort, ToolChoice

CHOICES = {"auto": ToolChoice.AUTO, "required": ToolChoice.ANY, "none": ToolChoice.NONE}
CHOICE_WORDS = {choice: word for word, choice in CHOICES.items()}
EFFORTS = {
    "minimal": Effort.LOW,
    "low": Effort.LOW,
    "medium": Effort.MEDIUM,
    "high": Effort.HIGH,
    "xhigh": Effort.HIGH,
}
