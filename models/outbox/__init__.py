"""The outbox: where news goes (endpoints), and each piece of news for each of them (deliveries)."""
