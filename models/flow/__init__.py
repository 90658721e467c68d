"""The verbs that move more than one row of a session. Each takes a locked session, and leaves its rows consistent. A
worker that claims locks the session by `queued_turn` or `queued_call`.

    lock       the lock, with the rows that nearly every verb reads
    begin/     what clients cause
        sessions      create, archive and delete a session
        messages      the events that clients send: messages, interrupts, decisions and results
        updates       title, metadata, and the agent's tools
        speakers      the people who start a run or send it messages, for four eyes
    run/       what workers cause
        turns         a turn's claim, checkpoint, retry and failure
        history       the messages for the model; `folds` shortens them before they are too long
        claims        a worker's claim of a tool call
        rejudging     the verdict on a call when it is claimed, by where its paths lead
        shared_files  calls of different threads write files one after the other
        results       the end of an attempt: a result, a question, or a lost worker
    decide/    what decisions cause, and what happens if nobody decides
        decisions     one decision per approval; `edits` checks and stores an edited input
        kinds/        what the decisions do, by the kind of approval
        questions     answers to a tool's question that name no request
        chat_words    decisions by chat words
        links         decisions by the links of messages
        deadlines     `on_timeout`, and reminders
        escalations   the next approvers, after a deadline
    spend/     what a run costs
        budgets       the most that a session may cost; `limits` holds turns to the spend limits that sessions share
        pricing       what a model costs
    judge/     which calls need people, and who may decide
        votes         who may decide, and when enough people have; `approvers` says it in words
        grants        verdicts that count grants; waiting calls that a new grant releases
        explanations  which rule decides about a call, and why
        simulations   a proposed rule, tried on past calls; `past_calls` finds them
    sub_agents/  what agents cause to each other
        threads       the calls that begin a sub-agent's thread and write to it; `inline_agents` are those that a model defines
        messages      messages between threads
        reports       what a coordinator gets when the run of its sub-agent ends
    carry_on/  what comes next
        next_step     the next step of the run, after any of these; `next_move` is its rule
        listing       the message of a conversation that says what waits
        halts         a halt's effect on sessions: deadlines, and calls that were held
        hosted_work   work for the workers of self-hosted environments

A door or a task opens the transaction, locks, calls one of these, and commits. It imports the verb from the verb's own module.
"""

import models.schema  # noqa: F401 - foreign keys name tables that no verb touches
