"""Rules about issues and pull requests: names, markers, who may trigger what, when a pull request may merge."""
