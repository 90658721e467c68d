"""`python -m crashes.announcing`: announces a worker's toolsets, and dies at a boundary that a test has armed."""

from crashes import dying

from workers import announcing

assert announcing.toolset is dying.toolset, "announcing calls the wrapped toolset.announce"

if __name__ == "__main__":
    announcing.main()
