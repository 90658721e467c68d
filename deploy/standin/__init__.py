"""The stand-in model: a small HTTP server that speaks the Messages API and Chat Completions, and costs nothing. This is its manual.

    python -m deploy.standin --port 8099
    ANTHROPIC_BASE_URL=http://127.0.0.1:8099 ANTHROPIC_API_KEY=any-key-will-do ...

It serves `POST /v1/messages` and `POST /v1/chat/completions` (streamed or not), `GET /v1/models` and `GET /healthz`. It refuses
the same requests as the real APIs, with the same errors: a tool call without its result, an unknown field (see `rules`, `chat`).
`GET /standin/requests?last=N` returns the requests to the model, oldest first; `DELETE` on the same path clears them.
Keys are neither checked nor stored.

The last text of the last user message with text holds the script, one directive per line. Other lines are prose and
have no effect. `then` ends a reply. The number of assistant messages after that text selects the next reply, so the
server stores no conversation, and a denied or failed call does not stop a script.

    say TEXT                        a piece of text; `\\n` in it is a new line
    say 500 tokens at 50/s          that many words of about four letters, at that pace (without `at`: at once)
    think TEXT                      a signed thinking block; a later request with a changed block is refused
    call NAME {"json": "input"}     a tool call; several in one reply are parallel
    then                            ends this reply; the next one comes after the results
    loop call NAME {...}            this reply again and again, whatever the results
    cut call NAME {...}             the reply stops in the middle of this call's input, with `max_tokens`
    broken call NAME TEXT           a tool call whose input is this text, which is not JSON; also `loop broken call`
    max_tokens                      the reply stops here, with `max_tokens`
    refuse [TEXT]                   the reply stops here, with `refusal`; TEXT is the explanation
    delay 2s                        a pause before the next block
    fail 529 2 times                the first two attempts at this reply get that status; also `always`
    fail 429 1 times retry-after 3  the same with that header, in seconds
    fail 529 mid-stream 1 times     an `error` event in the middle of the reply's last block
    drop connection mid-stream 1 times   the connection closes there; without `mid-stream` before any response

Attempts are counted per request body, so two identical conversations share a count; a line of prose separates them.
After the last counted attempt the count starts again. An unreadable directive is a 400 that names the line.

After a script's last reply the stand-in repeats the tools' results. Without any directive it proposes one harmless
`bash` call if it has that tool and the prompt asks to look around or to run something; else it explains its use. It
never repeats a refused call by itself.

A request with `compaction`, or whose last text asks to "Write a summary of the conversation", gets a summary that counts the
messages. The block of `compaction` is signed: a later request must send it first and unchanged. Models `old-*` refuse it.
Models `...-window-N` refuse a request of more than N tokens as too long.

Usage counts four characters as a token. Prompt caching works on prefixes of any length, by `cache_control`, for 5 min
or 1 h.
"""

from deploy.standin.server import create_app, serve

__all__ = ["create_app", "serve"]
