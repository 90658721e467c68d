"""The verbs that move more than one row of a session. Each takes a locked session, and leaves its rows consistent. The two claims,
`claim_turn` and `claim_call`, take the session's id and lock the session themselves:

    lock          the lock, with the rows that nearly every verb reads
    sessions      create, archive and delete a session; `removals` removes the rows of a deleted one
    messages      the events that clients send: messages, interrupts, decisions and results
    turns         a turn's claim, checkpoint, retry and failure
    history       the messages for the model; `folds` shortens them before they are too long
    chat_words    decisions by chat words
    decisions     one decision per approval; `edits` checks and stores an edited input
    delegating    a delegation by somebody else, of which its giver is notified
    votes         who may decide, and when enough people have; `approvers` says it in words
    deadlines     `on_timeout`, and reminders
    escalations   the next approvers, after a deadline
    speakers      the people who start a run or send it messages, for four eyes
    questions     people's answers to a tool's question
    explanations  which rule decides about a call, and why
    simulations   a proposed rule, tried on past calls; `past_calls` finds them
    grants        verdicts that count grants; waiting calls that a new grant releases
    updates       title, metadata, and the agent's tools
    claims        a worker's claim of a tool call
    rejudging     the verdict on a call when it is claimed, by where its paths lead
    results       the end of an attempt: a result, a question, or a lost worker
    next_step     the next step of the run, after any of these
    budgets       the most that a session may cost; `limits` holds turns to the spend limits that sessions share
    pricing       what a model costs
    halts         a halt's effect on sessions: deadlines, and calls that were held
    hosted_work   work for the workers of self-hosted environments
    due           rows that a sweep must act on; `queued` lists the queued rows that need a hint again
    readiness     the reasons why queued calls wait

A door or a task opens the transaction, locks, calls one of these, and commits.
"""

import models.schema  # noqa: F401 - foreign keys name tables that no verb touches
from models.flow.begin.messages import receive
from models.flow.begin.sessions import archive, create, delete
from models.flow.begin.updates import update
from models.flow.carry_on.halts import resume, settled
from models.flow.carry_on.hosted_work import offer_work, stop_work
from models.flow.decide.deadlines import expire_due, remind_due, too_late
from models.flow.decide.decisions import decide
from models.flow.judge.grants import release_waiting, session_policies, swept, workspace_policies
from models.flow.lock import lock, lock_and_read
from models.flow.run.claims import Hands, Taken, claim_call
from models.flow.run.folds import Folding, fit, fold
from models.flow.run.history import history, history_reads, joined, parts
from models.flow.run.rejudging import Unresolved
from models.flow.run.results import Outcome, expire_calls, finish_call, late_result, lose_call, put_back_call, rescue_call
from models.flow.run.turns import checkpoint, claim_turn, correct_usage, fail_turn, rescue_turn
from models.operate.removals import remove_batch

__all__ = [
    "Folding",
    "Hands",
    "Outcome",
    "Taken",
    "Unresolved",
    "archive",
    "checkpoint",
    "claim_call",
    "claim_turn",
    "correct_usage",
    "create",
    "decide",
    "delete",
    "expire_calls",
    "expire_due",
    "fail_turn",
    "finish_call",
    "fit",
    "fold",
    "history",
    "history_reads",
    "joined",
    "late_result",
    "lock",
    "lock_and_read",
    "lose_call",
    "offer_work",
    "parts",
    "put_back_call",
    "receive",
    "release_waiting",
    "remind_due",
    "remove_batch",
    "rescue_call",
    "rescue_turn",
    "resume",
    "session_policies",
    "settled",
    "stop_work",
    "swept",
    "too_late",
    "update",
    "workspace_policies",
]
