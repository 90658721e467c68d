"""What we answer, as models: the API's document is made from them, and tests hold every answer against them.

Nothing is validated against them when it is served: `api.wire` spells the answers, these describe them. They are open, as the
types of clients are: fields may come. The tests close them.
"""
