"""Subclasses and steps that change how a library works: one file each, named for the library.

Each file says what it saves, and which test fails when the library no longer needs the file.
"""
