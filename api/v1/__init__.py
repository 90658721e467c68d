"""The routes of the API, a folder or file per noun: each parses, authorises, calls one verb and responds."""
