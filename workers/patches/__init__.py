"""Changes to libraries at run time, and subclasses that reach inside them: one file each, named for the library.

Each says why it is there, what it saves, and which test tells when it can go.
"""
