"""Programs that speak the Agent Client Protocol. Only a runner imports the library; see `driver`."""
