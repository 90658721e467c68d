"""How every request comes in: who asks, what the request says, one transaction, one response, one form of errors."""
