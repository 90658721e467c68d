-- The tables and indexes of the first release. 0001_baseline.py runs this file, then creates the functions and grants the rights.

CREATE TABLE workspace (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    name varchar NOT NULL,
    audit_seq bigint NOT NULL,
    audit_head bytea NOT NULL,
    created_at timestamptz NOT NULL,
    policy jsonb,
    approval jsonb,
    seal_alarm varchar,
    seal_stopped varchar,
    model jsonb,
    chat_words jsonb,
    CONSTRAINT workspace_is_its_own CHECK (workspace_id = id)
);

CREATE TABLE api_key (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    name varchar NOT NULL,
    scopes text[] NOT NULL,
    secret_sha256 varchar NOT NULL UNIQUE,
    hint varchar NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    disabled_at timestamptz,
    revoked_at timestamptz,
    environment_id varchar,
    allowed_cidrs text[],
    makers text[]
);

CREATE TABLE agent (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    archived_at timestamptz
);
CREATE INDEX agent_newest ON agent (workspace_id, created_at, id);

CREATE TABLE agent_version (
    agent_id varchar NOT NULL REFERENCES agent,
    version integer NOT NULL,
    workspace_id varchar NOT NULL,
    body jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (agent_id, version)
);

CREATE TABLE environment (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    name varchar NOT NULL,
    description varchar,
    config jsonb NOT NULL,
    metadata jsonb NOT NULL,
    built_in boolean NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    archived_at timestamptz
);
CREATE INDEX environment_newest ON environment (workspace_id, created_at, id);

CREATE TABLE halt (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    reason varchar,
    started_at timestamptz NOT NULL,
    started_by varchar NOT NULL,
    ended_at timestamptz,
    ended_by varchar,
    settled_at timestamptz
);
CREATE INDEX halt_newest ON halt (workspace_id, started_at);
CREATE UNIQUE INDEX halt_open ON halt (workspace_id) WHERE ended_at IS NULL;
CREATE INDEX halt_unsettled ON halt (ended_at) WHERE ended_at IS NOT NULL AND settled_at IS NULL;

CREATE TABLE provider_key (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    provider varchar NOT NULL,
    ciphertext varchar NOT NULL,
    hint varchar NOT NULL,
    created_at timestamptz NOT NULL,
    created_by varchar NOT NULL,
    UNIQUE (workspace_id, provider)
);

CREATE TABLE spend_limit (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    scope_type varchar NOT NULL,
    scope_id varchar NOT NULL,
    period varchar NOT NULL,
    amount numeric,
    created_at timestamptz NOT NULL,
    created_by varchar NOT NULL,
    updated_at timestamptz NOT NULL,
    since date NOT NULL,
    spent numeric NOT NULL,
    reserved numeric NOT NULL,
    UNIQUE (workspace_id, scope_type, scope_id, period)
) WITH (fillfactor=70);

CREATE TABLE toolset (
    name varchar PRIMARY KEY,
    tools jsonb NOT NULL,
    digest varchar NOT NULL,
    workspaces text[],
    announced_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL
);

CREATE TABLE listing (
    workspace_id varchar NOT NULL REFERENCES workspace,
    url varchar NOT NULL,
    tools jsonb NOT NULL,
    digest varchar NOT NULL,
    listed_at timestamptz NOT NULL,
    changed_at timestamptz,
    PRIMARY KEY (workspace_id, url)
);
CREATE INDEX listing_of_url ON listing (url);

CREATE TABLE organization (
    id varchar PRIMARY KEY,
    created_at timestamptz NOT NULL
);

CREATE TABLE person (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    email varchar NOT NULL,
    name varchar NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (workspace_id, email),
    UNIQUE (workspace_id, id)
);
CREATE INDEX person_of_email ON person (email);

CREATE TABLE member (
    workspace_id varchar NOT NULL REFERENCES workspace,
    person_id varchar NOT NULL,
    role varchar NOT NULL,
    source varchar DEFAULT 'direct' NOT NULL,
    password_hash varchar,
    password_makers text[],
    created_at timestamptz NOT NULL,
    deactivated_at timestamptz,
    PRIMARY KEY (workspace_id, person_id),
    FOREIGN KEY (workspace_id, person_id) REFERENCES person (workspace_id, id)
);

CREATE TABLE identity (
    workspace_id varchar NOT NULL REFERENCES workspace,
    issuer varchar NOT NULL,
    subject varchar NOT NULL,
    person_id varchar NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, issuer, subject),
    FOREIGN KEY (workspace_id, person_id) REFERENCES member (workspace_id, person_id)
);
CREATE INDEX identity_of_account ON identity (issuer, subject);

CREATE TABLE person_group (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    name varchar NOT NULL,
    source varchar DEFAULT 'direct' NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX person_group_of_issuer ON person_group (workspace_id, source, name) WHERE source <> 'direct';
CREATE INDEX person_group_of_workspace ON person_group (workspace_id, id);

CREATE TABLE membership (
    group_id varchar NOT NULL REFERENCES person_group,
    person_id varchar NOT NULL REFERENCES person,
    workspace_id varchar NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (group_id, person_id)
);
CREATE INDEX membership_of_person ON membership (workspace_id, person_id);

CREATE TABLE delegation (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    from_person_id varchar NOT NULL REFERENCES person,
    to_person_id varchar NOT NULL REFERENCES person,
    group_id varchar,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    created_by varchar NOT NULL,
    ended_at timestamptz,
    ended_by varchar,
    accepted_at timestamptz
);
CREATE INDEX delegation_from ON delegation (workspace_id, from_person_id) WHERE ended_at IS NULL;
CREATE INDEX delegation_newest ON delegation (workspace_id, created_at, id);
CREATE INDEX delegation_to ON delegation (workspace_id, to_person_id) WHERE ended_at IS NULL;

CREATE TABLE invitation (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    email varchar NOT NULL,
    role varchar NOT NULL,
    group_ids text[] NOT NULL,
    renews boolean DEFAULT false NOT NULL,
    secret_sha256 varchar NOT NULL UNIQUE,
    invited_by varchar NOT NULL,
    makers text[],
    invited_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    accepted_at timestamptz,
    deleted_at timestamptz
);
CREATE INDEX invitation_of_workspace ON invitation (workspace_id, id);

CREATE TABLE sign_in (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    person_id varchar NOT NULL REFERENCES person,
    secret_sha256 varchar NOT NULL UNIQUE,
    method varchar NOT NULL,
    role_limit varchar,
    makers text[],
    address varchar,
    user_agent varchar,
    created_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    idle_until timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz
);
CREATE INDEX sign_in_of_person ON sign_in (workspace_id, person_id);

CREATE TABLE passkey (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    person_id varchar NOT NULL REFERENCES person,
    credential_id bytea NOT NULL UNIQUE,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    name varchar NOT NULL,
    makers text[],
    created_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX passkey_of_person ON passkey (workspace_id, person_id);

CREATE TABLE ceremony (
    id varchar PRIMARY KEY,
    data jsonb NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX ceremony_expiry ON ceremony (expires_at);

CREATE TABLE slack_user (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    team_id varchar NOT NULL,
    slack_id varchar NOT NULL,
    name varchar NOT NULL,
    person_id varchar REFERENCES person,
    makers text[],
    link_sha256 varchar,
    link_until timestamptz,
    created_at timestamptz NOT NULL,
    linked_at timestamptz,
    UNIQUE (workspace_id, team_id, slack_id)
);
CREATE INDEX slack_user_of_person ON slack_user (workspace_id, person_id);

CREATE TABLE session (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    agent_id varchar NOT NULL,
    environment_id varchar NOT NULL REFERENCES environment,
    title varchar,
    metadata jsonb NOT NULL,
    max_turns integer NOT NULL,
    chat_approvals boolean NOT NULL,
    created_at timestamptz NOT NULL,
    archived_at timestamptz,
    self_hosted boolean DEFAULT false NOT NULL,
    agent_version integer NOT NULL,
    overrides jsonb,
    long_results boolean DEFAULT false NOT NULL,
    git_written boolean DEFAULT false NOT NULL,
    on_ask varchar DEFAULT 'inbox' NOT NULL,
    on_behalf_of varchar,
    speakers text[] DEFAULT '{}' NOT NULL,
    makers text[],
    max_list_cost numeric,
    spend_limits_from numeric,
    usage jsonb NOT NULL,
    stop_reason jsonb,
    active_seconds double precision DEFAULT '0' NOT NULL,
    stream_positions jsonb NOT NULL,
    active_since timestamptz,
    status varchar NOT NULL,
    waits_for varchar DEFAULT 'none' NOT NULL,
    last_seq bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    audit_seq bigint NOT NULL,
    audit_head bytea NOT NULL,
    storage_id varchar
) WITH (fillfactor=90);
CREATE INDEX session_newest ON session (workspace_id, created_at);
CREATE INDEX session_waiting ON session (workspace_id, waits_for, created_at);

CREATE TABLE thread (
    session_id varchar NOT NULL,
    id varchar NOT NULL,
    workspace_id varchar NOT NULL,
    parent_id varchar,
    agent_id varchar NOT NULL,
    agent_version integer NOT NULL,
    name varchar NOT NULL,
    created_at timestamptz NOT NULL,
    archived_at timestamptz,
    usage jsonb NOT NULL,
    stop_reason jsonb,
    context_tokens integer DEFAULT 0 NOT NULL,
    context_at timestamptz,
    active_seconds double precision DEFAULT '0' NOT NULL,
    active_since timestamptz,
    status varchar NOT NULL,
    waits_for varchar DEFAULT 'none' NOT NULL,
    updated_at timestamptz NOT NULL,
    unread integer NOT NULL,
    turn_number integer NOT NULL,
    turn_count integer NOT NULL,
    turn_id varchar,
    PRIMARY KEY (session_id, id)
) WITH (fillfactor=90);

CREATE TABLE turn (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    thread_id varchar NOT NULL,
    number integer NOT NULL,
    count integer NOT NULL,
    losses integer NOT NULL,
    due_at timestamptz NOT NULL,
    hinted_at timestamptz,
    created_at timestamptz NOT NULL,
    span_id varchar,
    worker varchar,
    task varchar,
    started_at timestamptz,
    attempt integer NOT NULL,
    fence bigint NOT NULL,
    lease_until timestamptz,
    status varchar NOT NULL,
    ended_at timestamptz,
    stop_reason varchar,
    provider varchar,
    model varchar,
    quote jsonb,
    folds integer DEFAULT 0 NOT NULL,
    overlong_after integer,
    UNIQUE (session_id, thread_id, number)
) WITH (fillfactor=90);
CREATE INDEX turn_queued ON turn (workspace_id, due_at) WHERE status = 'queued';
CREATE INDEX turn_running ON turn (workspace_id) WHERE status = 'running';

CREATE TABLE reply (
    turn_id varchar PRIMARY KEY REFERENCES turn ON DELETE CASCADE,
    workspace_id varchar NOT NULL,
    content jsonb NOT NULL
);

CREATE TABLE tool_call (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    thread_id varchar NOT NULL,
    turn_id varchar NOT NULL REFERENCES turn,
    position integer NOT NULL,
    provider_id varchar NOT NULL,
    name varchar NOT NULL,
    kind varchar NOT NULL,
    input_sha256 bytea NOT NULL,
    permission varchar NOT NULL,
    rule varchar NOT NULL,
    idempotent boolean NOT NULL,
    announced boolean NOT NULL,
    status varchar NOT NULL,
    fence bigint NOT NULL,
    attempt integer NOT NULL,
    lease_until timestamptz,
    worker varchar,
    task varchar,
    due_at timestamptz NOT NULL,
    hinted_at timestamptz,
    held_back varchar,
    cancel_requested_at timestamptz,
    is_error boolean,
    created_at timestamptz NOT NULL,
    settled_at timestamptz,
    grants text[],
    server varchar,
    address varchar,
    tool varchar,
    queue varchar,
    cached_from varchar,
    cache jsonb,
    workdir boolean DEFAULT true NOT NULL,
    answer_seconds double precision,
    answer_by timestamptz,
    deadline_from timestamptz
) WITH (fillfactor=90);
CREATE INDEX tool_call_cached ON tool_call (workspace_id, input_sha256, settled_at) WHERE cache IS NOT NULL AND status = 'done';
CREATE INDEX tool_call_held ON tool_call (workspace_id) WHERE status = 'held';
CREATE INDEX tool_call_held_back ON tool_call (queue, due_at) WHERE status = 'queued' AND held_back IS NOT NULL;
CREATE INDEX tool_call_leased ON tool_call (lease_until) WHERE status = 'running';
CREATE INDEX tool_call_of_turn ON tool_call (turn_id);
CREATE INDEX tool_call_queued ON tool_call (queue, workspace_id, due_at) WHERE status = 'queued' AND held_back IS NULL;
CREATE INDEX tool_call_with_client ON tool_call (answer_by) WHERE status = 'with_client' AND answer_by IS NOT NULL;

CREATE TABLE call_input (
    tool_call_id varchar PRIMARY KEY REFERENCES tool_call ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    workspace_id varchar NOT NULL,
    input jsonb NOT NULL,
    proposed_input jsonb,
    shown_input jsonb,
    secrets jsonb,
    asking jsonb,
    question jsonb,
    answers jsonb,
    asked_by text[]
);

CREATE TABLE call_result (
    tool_call_id varchar PRIMARY KEY REFERENCES tool_call ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    workspace_id varchar NOT NULL,
    content jsonb NOT NULL,
    structured jsonb
);

CREATE TABLE stored_result (
    tool_call_id varchar PRIMARY KEY REFERENCES tool_call,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    content bytea NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX ix_stored_result_session_id ON stored_result (session_id);

CREATE TABLE attempt (
    tool_call_id varchar NOT NULL REFERENCES tool_call,
    number integer NOT NULL,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    worker varchar NOT NULL,
    input_sha256 bytea NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    outcome varchar,
    output text,
    late_result jsonb,
    PRIMARY KEY (tool_call_id, number)
);

CREATE TABLE approval (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    thread_id varchar NOT NULL,
    tool_call_id varchar REFERENCES tool_call,
    kind varchar NOT NULL,
    tool varchar NOT NULL,
    prompt varchar NOT NULL,
    input varchar NOT NULL,
    shown_input jsonb,
    input_sha256 bytea NOT NULL,
    rule varchar NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    agent_id varchar,
    input_schema jsonb,
    on_timeout varchar DEFAULT 'deny' NOT NULL,
    remind_at timestamptz,
    reminded_at timestamptz,
    annotations jsonb,
    questions jsonb,
    leads_to jsonb,
    attempt_told jsonb,
    decision jsonb,
    shown_fields jsonb,
    decided_by varchar,
    decided_at timestamptz,
    decided_input varchar,
    decided_shown jsonb,
    decided_sha256 bytea,
    event_id varchar,
    status varchar NOT NULL,
    quorum jsonb,
    approver_set varchar DEFAULT '' NOT NULL,
    escalation jsonb,
    level integer DEFAULT 0 NOT NULL,
    started_by text[] DEFAULT '{}' NOT NULL,
    deadline_from timestamptz DEFAULT now() NOT NULL
);
CREATE INDEX approval_at_cap ON approval (tool, workspace_id) WHERE status = 'pending' AND kind = 'budget';
-- Else a plan that is made for any set takes a common one, and looks for a rare one among all that wait.
ALTER TABLE approval ALTER COLUMN approver_set SET (n_distinct = 1000);
CREATE INDEX approval_beyond_calls ON approval (session_id, created_at) WHERE tool_call_id IS NULL;
CREATE INDEX approval_due ON approval (expires_at) WHERE status = 'pending';
CREATE INDEX approval_inbox ON approval (workspace_id, created_at);
CREATE INDEX approval_of_approvers ON approval (workspace_id, approver_set, expires_at) WHERE status = 'pending';
CREATE INDEX approval_of_call ON approval (tool_call_id);
CREATE INDEX approval_of_session ON approval (session_id);
CREATE INDEX approval_queue ON approval (workspace_id, expires_at) WHERE status = 'pending';
CREATE INDEX approval_to_remind ON approval (remind_at) WHERE status = 'pending' AND remind_at IS NOT NULL;
CREATE INDEX approval_waiting_of_agent ON approval (agent_id, tool) WHERE status = 'pending' AND kind = 'tool_call';

CREATE TABLE approver_set (
    workspace_id varchar NOT NULL,
    name varchar NOT NULL,
    id varchar NOT NULL,
    PRIMARY KEY (workspace_id, name, id)
);

CREATE TABLE vote (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    approval_id varchar NOT NULL REFERENCES approval,
    person_id varchar NOT NULL REFERENCES person,
    for_person_id varchar NOT NULL REFERENCES person,
    makers text[],
    delegation_id varchar,
    result varchar NOT NULL,
    input_sha256 varchar NOT NULL,
    choice_sha256 varchar NOT NULL,
    decision jsonb NOT NULL,
    event_id varchar NOT NULL,
    created_at timestamptz NOT NULL,
    voided_at timestamptz
);
CREATE INDEX vote_of_approval ON vote (approval_id);
CREATE UNIQUE INDEX vote_one_by_person ON vote (approval_id, person_id) WHERE voided_at IS NULL;
CREATE UNIQUE INDEX vote_one_for_person ON vote (approval_id, for_person_id) WHERE voided_at IS NULL;

CREATE TABLE evidence (
    approval_id varchar PRIMARY KEY REFERENCES approval,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    body jsonb NOT NULL,
    looked_at timestamptz NOT NULL
);
CREATE INDEX ix_evidence_session_id ON evidence (session_id);

CREATE TABLE event (
    session_id varchar NOT NULL,
    seq bigint NOT NULL,
    id varchar NOT NULL,
    workspace_id varchar NOT NULL,
    thread_id varchar NOT NULL,
    type varchar NOT NULL,
    body jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    processed_at timestamptz,
    turn_id varchar,
    PRIMARY KEY (session_id, seq)
);
CREATE INDEX event_message ON event (session_id, seq) WHERE type = 'user.message';

CREATE TABLE work (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    environment_id varchar NOT NULL,
    session_id varchar NOT NULL,
    status varchar NOT NULL,
    metadata jsonb NOT NULL,
    worker varchar,
    lease_until timestamptz,
    due_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    offered_at timestamptz,
    acknowledged_at timestamptz,
    started_at timestamptz,
    heartbeat_at timestamptz,
    heartbeat_before timestamptz,
    stop_requested_at timestamptz,
    stopped_at timestamptz
);
CREATE INDEX work_newest ON work (environment_id, created_at, id);
CREATE INDEX work_of_session ON work (session_id);
CREATE UNIQUE INDEX work_one_at_a_time ON work (session_id) WHERE status <> 'stopped';
CREATE INDEX work_waiting ON work (environment_id, due_at) WHERE status <> 'stopped';

CREATE TABLE approval_grant (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    scope varchar NOT NULL,
    agent_id varchar NOT NULL REFERENCES agent,
    session_id varchar,
    approval_id varchar NOT NULL,
    tool varchar NOT NULL,
    identity varchar NOT NULL,
    match jsonb NOT NULL,
    covers varchar NOT NULL,
    given_by varchar NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    max_uses integer,
    uses integer NOT NULL,
    revoked_at timestamptz,
    revoked_by varchar,
    swept_to varchar,
    swept_at timestamptz,
    voters jsonb,
    CONSTRAINT grant_of_agent_expires CHECK (session_id IS NOT NULL OR expires_at IS NOT NULL)
);
CREATE INDEX grant_newest ON approval_grant (workspace_id, created_at, id);
CREATE INDEX grant_of_agent ON approval_grant (agent_id, tool, expires_at) WHERE session_id IS NULL AND revoked_at IS NULL;
CREATE INDEX grant_of_session ON approval_grant (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX grant_unswept ON approval_grant (created_at) WHERE revoked_at IS NULL AND swept_at IS NULL;

CREATE TABLE fold (
    session_id varchar NOT NULL,
    thread_id varchar NOT NULL,
    kind varchar NOT NULL,
    through integer NOT NULL,
    seq bigint NOT NULL,
    workspace_id varchar NOT NULL,
    turn_id varchar NOT NULL,
    summary jsonb,
    provider varchar,
    model varchar,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (session_id, thread_id, kind, through)
);

CREATE TABLE turn_usage (
    turn_id varchar NOT NULL,
    attempt integer NOT NULL,
    request integer NOT NULL,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    thread_id varchar NOT NULL,
    agent_id varchar NOT NULL,
    person_id varchar,
    provider varchar NOT NULL,
    model varchar NOT NULL,
    at timestamptz NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cache_read_input_tokens bigint NOT NULL,
    cache_creation_input_tokens bigint NOT NULL,
    cache_creation_1h_input_tokens bigint NOT NULL,
    web_search_requests bigint NOT NULL,
    web_fetch_requests bigint NOT NULL,
    estimated boolean NOT NULL,
    price jsonb,
    cost numeric,
    cache_savings numeric,
    PRIMARY KEY (turn_id, attempt, request)
);
CREATE INDEX turn_usage_of_workspace ON turn_usage (workspace_id, at);

CREATE TABLE daily_usage (
    workspace_id varchar NOT NULL,
    day date NOT NULL,
    agent_id varchar NOT NULL,
    person_id varchar NOT NULL,
    provider varchar NOT NULL,
    model varchar NOT NULL,
    requests bigint NOT NULL,
    estimated_requests bigint NOT NULL,
    unpriced_requests bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cache_read_input_tokens bigint NOT NULL,
    cache_creation_input_tokens bigint NOT NULL,
    cache_creation_1h_input_tokens bigint NOT NULL,
    web_search_requests bigint NOT NULL,
    web_fetch_requests bigint NOT NULL,
    cost numeric NOT NULL,
    cache_savings numeric NOT NULL,
    PRIMARY KEY (workspace_id, day, agent_id, person_id, provider, model)
) WITH (fillfactor=70);
CREATE INDEX daily_usage_of_person ON daily_usage (workspace_id, person_id, day);

CREATE TABLE endpoint (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    url varchar NOT NULL,
    name varchar NOT NULL,
    description varchar NOT NULL,
    enabled_events text[] NOT NULL,
    state varchar NOT NULL,
    disabled_reason varchar NOT NULL,
    secret varchar NOT NULL,
    previous_secret varchar,
    previous_until timestamptz,
    succeeded_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    failing_since timestamptz,
    paused_until timestamptz,
    last_seconds double precision
);
CREATE INDEX endpoint_of_workspace ON endpoint (workspace_id, id);

CREATE TABLE delivery (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    endpoint_id varchar NOT NULL,
    event_id varchar NOT NULL,
    event_type varchar NOT NULL,
    subject_id varchar NOT NULL,
    session_id varchar,
    status varchar NOT NULL,
    fence bigint NOT NULL,
    attempt integer NOT NULL,
    attempts jsonb NOT NULL,
    lease_until timestamptz,
    task varchar,
    due_at timestamptz NOT NULL,
    hinted_at timestamptz,
    created_at timestamptz NOT NULL,
    ended_at timestamptz
);
CREATE INDEX delivery_ended ON delivery (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX delivery_of_endpoint ON delivery (endpoint_id, id);
CREATE INDEX delivery_running ON delivery (endpoint_id, lease_until) WHERE status = 'running';
CREATE INDEX delivery_waiting ON delivery (endpoint_id, due_at, id) WHERE status = 'queued';

CREATE TABLE link (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    approval_id varchar NOT NULL,
    person_id varchar NOT NULL,
    input_sha256 varchar NOT NULL,
    token_sha256 varchar NOT NULL UNIQUE,
    code_hmac varchar NOT NULL,
    tries integer NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    deadline_from timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX link_expiry ON link (expires_at);
CREATE INDEX link_of_approval ON link (approval_id, person_id);
CREATE INDEX link_of_session ON link (session_id);

CREATE TABLE channel (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    person_id varchar REFERENCES person,
    for_everyone boolean NOT NULL,
    follows_default boolean NOT NULL,
    kind varchar NOT NULL,
    name varchar NOT NULL,
    address varchar NOT NULL,
    secret varchar,
    token_sha256 varchar,
    about varchar NOT NULL,
    timing varchar NOT NULL,
    quiet_from varchar,
    quiet_until varchar,
    time_zone varchar NOT NULL,
    state varchar NOT NULL,
    disabled_reason varchar NOT NULL,
    error varchar NOT NULL,
    sent_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX channel_default ON channel (workspace_id) WHERE for_everyone;
CREATE UNIQUE INDEX channel_following ON channel (workspace_id, person_id) WHERE follows_default;
CREATE INDEX channel_of_workspace ON channel (workspace_id, person_id, id);

CREATE TABLE approval_change (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    approval_id varchar NOT NULL,
    stage varchar NOT NULL,
    seq bigint NOT NULL,
    due_at timestamptz NOT NULL,
    hinted_at timestamptz
);
CREATE INDEX approval_change_due ON approval_change (due_at);

CREATE TABLE notification (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    session_id varchar NOT NULL,
    approval_id varchar NOT NULL,
    channel_id varchar NOT NULL REFERENCES channel,
    stage varchar NOT NULL,
    seq bigint NOT NULL,
    sent_stage varchar,
    receipt jsonb,
    status varchar NOT NULL,
    fence bigint NOT NULL,
    attempt integer NOT NULL,
    error varchar NOT NULL,
    lease_until timestamptz,
    task varchar,
    due_at timestamptz NOT NULL,
    hinted_at timestamptz,
    created_at timestamptz NOT NULL,
    ended_at timestamptz
);
CREATE INDEX notification_ended ON notification (ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX notification_of_approval ON notification (approval_id, channel_id);
CREATE INDEX notification_of_channel ON notification (channel_id);
CREATE INDEX notification_queued ON notification (due_at) WHERE status = 'queued';
CREATE INDEX notification_running ON notification (lease_until) WHERE status = 'running';

CREATE TABLE slack_reply (
    id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL REFERENCES workspace,
    conversation_id varchar NOT NULL,
    slack_id varchar NOT NULL,
    slack_user_id varchar NOT NULL,
    text varchar NOT NULL,
    offers_link boolean NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE audit (
    chain varchar NOT NULL,
    seq bigint NOT NULL,
    workspace_id varchar NOT NULL,
    at timestamptz NOT NULL,
    principal varchar NOT NULL,
    address varchar,
    action varchar NOT NULL,
    subject_id varchar NOT NULL,
    details jsonb NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (chain, seq)
);
CREATE INDEX audit_at ON audit USING brin (at) WITH (pages_per_range='16', autosummarize='true');

CREATE TABLE audit_text (
    chain varchar NOT NULL,
    seq bigint NOT NULL,
    name varchar NOT NULL,
    workspace_id varchar NOT NULL,
    salt bytea NOT NULL,
    text varchar NOT NULL,
    PRIMARY KEY (chain, seq, name)
);

CREATE TABLE seal (
    workspace_id varchar NOT NULL,
    seq bigint NOT NULL,
    key_id varchar NOT NULL,
    signature varchar NOT NULL,
    PRIMARY KEY (workspace_id, seq)
);

CREATE TABLE stored_response (
    id varchar PRIMARY KEY,
    slip varchar NOT NULL,
    workspace_id varchar NOT NULL,
    body_sha256 varchar NOT NULL,
    text varchar NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX stored_response_expiry ON stored_response (expires_at);
CREATE INDEX stored_response_slip ON stored_response (slip, expires_at);

CREATE TABLE removal (
    subject_id varchar PRIMARY KEY,
    workspace_id varchar NOT NULL,
    kind varchar NOT NULL,
    created_at timestamptz NOT NULL,
    emptied_at timestamptz
);
CREATE INDEX removal_due ON removal (created_at);

CREATE TABLE failure (
    task varchar NOT NULL,
    subject_id varchar NOT NULL,
    workspace_id varchar NOT NULL,
    failures integer NOT NULL,
    error varchar NOT NULL,
    since timestamptz NOT NULL,
    not_before timestamptz NOT NULL,
    PRIMARY KEY (task, subject_id)
);
