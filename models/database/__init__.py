"""The database: connections, transactions, rows, ids, and the only clock."""
