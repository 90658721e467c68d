"""The outbox: messages to systems (endpoints and deliveries) and to people (channels and notifications)."""
