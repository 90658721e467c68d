"""`python -m crashes.announcing`: what a worker starts to announce its toolsets, and it dies where a test has armed it to."""

from crashes import dying

from workers import announcing

assert announcing.toolset is dying.toolset, "it announces by the wrapped one"

if __name__ == "__main__":
    announcing.main()
