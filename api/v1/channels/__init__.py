"""Channels that tell people, the buttons of Slack's messages, and the links that unsubscribe from mail."""
