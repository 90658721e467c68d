"""The database: connections, transactions, rows, and the only clock."""
