"""The sections of the settings files, one frozen dataclass each."""
