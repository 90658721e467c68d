"""Toolsets that come with Assent, to be read and copied. None is in use unless the setting ASSENT_TOOLSETS names it."""
