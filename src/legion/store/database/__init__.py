"""The database itself: transactions, tables, columns, errors."""
