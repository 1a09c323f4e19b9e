-- One row per effect, with its current attempt; an alias row for each further identity of an effect.
-- Times are milliseconds since the Unix epoch on the ledger's clock; digests are BLAKE3.
CREATE TABLE effectual_effects (
    seq                 INTEGER PRIMARY KEY,
    digest              BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    tenant              TEXT    NOT NULL,
    -- An alias names the row that holds the effect, and nothing else.
    alias_of            BLOB    REFERENCES effectual_effects (digest) CHECK (length(alias_of) = 32),
    key_version         INTEGER NOT NULL CHECK (key_version >= 1),

    operation           TEXT,
    keying              TEXT    CHECK (keying IN ('business-identity', 'activity-recipe')),
    readable            TEXT,
    provider            TEXT,
    provider_key        TEXT,
    -- JSON: [[name, hex digest], [name, hex digest, key id], …]
    fingerprints        TEXT,
    created_at          INTEGER,
    first_send_at       INTEGER,
    -- The stored arguments of an effect that can be finished without its caller.
    input               BLOB,
    input_codec         TEXT,

    state               TEXT    CHECK (state IN ('claimed', 'completed', 'released', 'escaped')),
    fence               INTEGER CHECK (fence >= 1),
    attempt             INTEGER CHECK (attempt >= 1),
    token               BLOB    CHECK (length(token) = 16),
    class               TEXT    CHECK (class IN ('rerun', 'resend', 'reconcile', 'transactional', 'hold')),
    run                 TEXT,
    node                TEXT,
    invocation          TEXT,
    started_at          INTEGER,
    lease_until         INTEGER,
    attempt_timeout_ms  INTEGER CHECK (attempt_timeout_ms > 0),

    -- The current attempt's end; null while it is open.
    ended_at            INTEGER,
    verdict             TEXT    CHECK (verdict IN ('performed', 'refused', 'not_performed', 'unknown')),
    send_digest         BLOB    CHECK (length(send_digest) = 32),
    key_taken           INTEGER CHECK (key_taken IN (0, 1)),

    doubt_attempt       INTEGER CHECK (doubt_attempt >= 1 AND doubt_attempt <= attempt),
    doubt_since         INTEGER,
    doubt_class         TEXT    CHECK (doubt_class IN ('rerun', 'resend', 'reconcile', 'transactional', 'hold')),
    doubt_acts_until    INTEGER,
    doubt_send_digest   BLOB    CHECK (length(doubt_send_digest) = 32),

    accepted_handle     TEXT,
    accepted_poll_after INTEGER,
    not_before          INTEGER,

    outcome_kind        TEXT    CHECK (outcome_kind IN ('success', 'refusal')),
    payload             BLOB,
    payload_codec       TEXT,
    absent_reason       TEXT    CHECK (absent_reason IN ('expired', 'unencodable', 'too_large')),
    provider_replay     INTEGER CHECK (provider_replay IN (0, 1)),
    settled_at          INTEGER,
    retain_until        INTEGER,

    late_success        INTEGER NOT NULL DEFAULT 0 CHECK (late_success IN (0, 1)),
    double_suspected    INTEGER NOT NULL DEFAULT 0 CHECK (double_suspected IN (0, 1)),
    revision            INTEGER NOT NULL DEFAULT 1 CHECK (revision >= 1),

    CONSTRAINT alias_or_effect CHECK (
        CASE WHEN alias_of IS NULL
        THEN operation IS NOT NULL AND keying IS NOT NULL AND provider_key IS NOT NULL AND fingerprints IS NOT NULL
            AND created_at IS NOT NULL AND state IS NOT NULL AND fence IS NOT NULL AND attempt IS NOT NULL
            AND token IS NOT NULL AND class IS NOT NULL AND started_at IS NOT NULL AND lease_until IS NOT NULL
            AND attempt_timeout_ms IS NOT NULL
        ELSE state IS NULL AND fence IS NULL AND attempt IS NULL AND token IS NULL AND payload IS NULL
            AND outcome_kind IS NULL AND alias_of <> digest
        END),
    CONSTRAINT end_whole CHECK (
        (ended_at IS NULL) = (verdict IS NULL) AND (ended_at IS NULL) = (key_taken IS NULL)
        AND (ended_at IS NOT NULL OR send_digest IS NULL)),
    CONSTRAINT doubt_whole CHECK (
        (doubt_attempt IS NULL) = (doubt_since IS NULL) AND (doubt_attempt IS NULL) = (doubt_class IS NULL)
        AND (doubt_attempt IS NULL) = (doubt_acts_until IS NULL)
        AND (doubt_attempt IS NOT NULL OR doubt_send_digest IS NULL)),
    CONSTRAINT accepted_whole CHECK ((accepted_handle IS NULL) = (accepted_poll_after IS NULL)),
    CONSTRAINT input_whole CHECK ((input IS NULL) = (input_codec IS NULL)),
    CONSTRAINT completed_has_outcome CHECK (
        CASE WHEN state = 'completed'
        THEN outcome_kind IS NOT NULL AND provider_replay IS NOT NULL AND settled_at IS NOT NULL
            AND retain_until IS NOT NULL AND (payload IS NULL) <> (absent_reason IS NULL)
            AND (payload IS NULL) = (payload_codec IS NULL) AND ended_at IS NOT NULL AND doubt_attempt IS NULL
            AND verdict = CASE outcome_kind WHEN 'success' THEN 'performed' ELSE 'refused' END
        ELSE outcome_kind IS NULL AND payload IS NULL AND payload_codec IS NULL AND absent_reason IS NULL
            AND provider_replay IS NULL AND settled_at IS NULL AND retain_until IS NULL
        END),
    -- Not `state <> 'released' OR …`: with an alias' null that would be null, which a CHECK lets pass.
    CONSTRAINT released_is_known CHECK (
        CASE WHEN state = 'released' THEN ended_at IS NOT NULL AND doubt_attempt IS NULL ELSE 1 END),
    CONSTRAINT escaped_is_doubted CHECK (
        CASE WHEN state = 'escaped' THEN doubt_attempt IS NOT NULL ELSE 1 END)
);

CREATE INDEX effectual_effects_by_alias ON effectual_effects (alias_of) WHERE alias_of IS NOT NULL;
CREATE INDEX effectual_effects_by_run ON effectual_effects (run) WHERE run IS NOT NULL;

-- Closed attempts: written when the effect's attempt number changes, never before.
CREATE TABLE effectual_attempts (
    digest              BLOB    NOT NULL REFERENCES effectual_effects (digest),
    attempt             INTEGER NOT NULL CHECK (attempt >= 1),
    fence               INTEGER NOT NULL CHECK (fence >= 1),
    token               BLOB    NOT NULL CHECK (length(token) = 16),
    class               TEXT    NOT NULL CHECK (class IN ('rerun', 'resend', 'reconcile', 'transactional', 'hold')),
    run                 TEXT,
    node                TEXT,
    invocation          TEXT,
    started_at          INTEGER NOT NULL,
    lease_until         INTEGER NOT NULL,
    attempt_timeout_ms  INTEGER NOT NULL,
    ended_at            INTEGER NOT NULL,
    verdict             TEXT    NOT NULL CHECK (verdict IN ('performed', 'refused', 'not_performed', 'unknown')),
    send_digest         BLOB    CHECK (length(send_digest) = 32),
    key_taken           INTEGER NOT NULL CHECK (key_taken IN (0, 1)),
    PRIMARY KEY (digest, attempt)
) WITHOUT ROWID;

CREATE INDEX effectual_attempts_by_run ON effectual_attempts (run) WHERE run IS NOT NULL;

-- The first time a run met an effect that another performed.
CREATE TABLE effectual_touches (
    run                 TEXT    NOT NULL,
    digest              BLOB    NOT NULL REFERENCES effectual_effects (digest),
    node                TEXT,
    invocation          TEXT,
    at                  INTEGER NOT NULL,
    PRIMARY KEY (run, digest)
) WITHOUT ROWID;

-- Answers that came behind a raised fence, or that a doubt kept from being the outcome.
CREATE TABLE effectual_evidence (
    seq                 INTEGER PRIMARY KEY,
    digest              BLOB    NOT NULL REFERENCES effectual_effects (digest),
    attempt             INTEGER NOT NULL,
    fence               INTEGER NOT NULL,
    at                  INTEGER NOT NULL,
    verdict             TEXT    NOT NULL CHECK (verdict IN ('performed', 'refused', 'not_performed', 'unknown')),
    payload             BLOB,
    payload_codec       TEXT,
    UNIQUE (digest, attempt, fence, verdict),
    CHECK ((payload IS NULL) = (payload_codec IS NULL))
);

-- What operators did, and why.
CREATE TABLE effectual_audit (
    seq                 INTEGER PRIMARY KEY,
    digest              BLOB    NOT NULL REFERENCES effectual_effects (digest),
    at                  INTEGER NOT NULL,
    who                 TEXT    NOT NULL,
    why                 TEXT    NOT NULL,
    action              TEXT    NOT NULL,
    before              TEXT    NOT NULL,
    after               TEXT    NOT NULL
);

CREATE INDEX effectual_audit_by_effect ON effectual_audit (digest);
