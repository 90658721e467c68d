"""OpenAI's Chat Completions as a way into sessions: an agent is a model, a conversation is a session.

requests      the body of a request, and what cannot be done
translating   a request's messages and tools as events and tools of a session
beginning     the effect of a request, in one transaction: a session, messages, results
waiting       the wait for the run, and the text that the model writes meanwhile
ending        the results of a run: calls, approvals, usage, the reason of its end
responses     the response, whole or as chunks
listing       a stored session as messages
routes        the routes
"""
