"""The small programs of the leash: `keeper`, `sentinel` and `launcher`, and the modules that they share.

Programs start beside each worker process. So these modules import little, from the standard library alone and never `typing`,
`pathlib` or `contextlib`, and this package has no code. `start.program` makes the command line that runs one of them.
"""
