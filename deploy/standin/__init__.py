"""The stand-in model: a small HTTP server that speaks the Messages API and costs nothing. This text is its manual.

    python -m deploy.standin --port 8099
    ANTHROPIC_BASE_URL=http://127.0.0.1:8099 ANTHROPIC_API_KEY=any-key-will-do ...

It serves `POST /v1/messages` (streamed or not), `GET /v1/models` and `GET /healthz`. It refuses what the real one
refuses, in the same shapes: a tool call without its result, an empty text, an unknown field (see `rules`). `GET
/standin/requests?last=N` answers what the model was sent, oldest first; `DELETE` on the same path forgets it. Keys
are neither checked nor kept.

What it answers is written in the last text of the last user message that has any, one directive per line; other lines
are prose and do nothing. `then` ends a reply. Which reply is next follows from how many assistant messages come after
that text, so the server keeps no conversation, and a denied or failed call does not stop a script.

    say TEXT                        a piece of text; `\\n` in it is a new line
    say 500 tokens at 50/s          that many words of about four letters, at that pace (without `at`: at once)
    think TEXT                      a thinking block, signed; it refuses the block back if anybody changed it
    call NAME {"json": "input"}     a tool call; several in one reply are parallel
    then                            what follows is the next reply, after the results
    loop call NAME {...}            this reply again and again, whatever the results
    cut call NAME {...}             the reply stops in the middle of this call's input, with `max_tokens`
    max_tokens                      the reply stops here, with `max_tokens`
    refuse [TEXT]                   the reply stops here, with `refusal`; TEXT is the explanation
    delay 2s                        a pause before what follows
    fail 529 2 times                the first two tries at this reply are answered with that status; also `always`
    fail 429 1 times retry-after 3  the same with that header, in seconds
    fail 529 mid-stream 1 times     an `error` event in the middle of the reply's last block
    drop connection mid-stream 1 times   the connection closes there; without `mid-stream` before any answer

Tries are counted by what was sent, so two conversations that are equal to the letter share a count; a line of prose
tells them apart. A count that is used up starts anew. A line that is a directive but cannot be read is a 400 that
says which.

After a script's last reply, and without any directive, it says what the tools answered; or offers one harmless `bash`
call if it has that tool and is asked to run something; or says how it can be used. It never tries a refused call
again by itself.

Usage counts four characters as a token. Prompt caching works on prefixes of any length, by `cache_control`, for 5 min
or 1 h.
"""

from deploy.standin.server import create_app, serve

__all__ = ["create_app", "serve"]
