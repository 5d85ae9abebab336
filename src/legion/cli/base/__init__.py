"""What commands share: options, output, live screens, exit codes."""
