"""The daemon process: wires all packages together and serves the API."""
