"""Plans and epics: make, show, edit, approve and reject plans; follow and stop an epic."""
