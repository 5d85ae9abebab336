"""Usage and cost of requests: meter, prices, limits, refusals and the ledger."""
