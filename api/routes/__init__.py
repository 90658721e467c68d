"""The routes of the API: each parses, authorises, calls one verb and answers. A file per noun, with the noun's blueprint."""
