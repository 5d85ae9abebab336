"""What requests used and cost: counters, prices, limits and the ledger."""
