"""How people are told: channels, the notifications that go there, their texts and links."""
