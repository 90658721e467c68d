"""The data of one person or one session: exporting and erasing it."""
