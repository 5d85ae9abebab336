"""Recordings of the requests and answers of recorded runs."""
