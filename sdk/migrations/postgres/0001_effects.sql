-- One row per effect, with its current attempt; an alias row for each further identity of an effect.
-- Times are milliseconds since the Unix epoch on the ledger's clock; digests are BLAKE3.
-- The first half of a digest is the key: an index over 16 bytes takes in more claims a second than one over 32. The
-- second half is compared, so that two digests that share a first half are never taken for one effect.
-- Runs are compared by their bytes: an index then survives a change of the system's collation.
CREATE TABLE effectual_effects (
    -- No number of its own: a sequence would be advanced, and so written, by a claim that finds the row.
    digest_head         uuid    PRIMARY KEY,
    digest_tail         bytea   NOT NULL CHECK (octet_length(digest_tail) = 16),
    tenant              text    NOT NULL,
    -- An alias names the row that holds the effect, and nothing else.
    alias_of            bytea   CHECK (octet_length(alias_of) = 32),
    key_version         bigint  NOT NULL CHECK (key_version >= 1),

    operation           text,
    keying              text    CHECK (keying IN ('business-identity', 'activity-recipe')),
    readable            text,
    provider            text,
    provider_key        text,
    -- JSON: [[name, hex digest], [name, hex digest, key id], …]
    fingerprints        text,
    created_at          bigint,
    first_send_at       bigint,
    -- The stored arguments of an effect that can be finished without its caller.
    input               bytea,
    input_codec         text,

    state               text    CHECK (state IN ('claimed', 'completed', 'released', 'escaped')),
    fence               bigint  CHECK (fence >= 1),
    attempt             bigint  CHECK (attempt >= 1),
    token               uuid,
    class               text    CHECK (class IN ('rerun', 'resend', 'reconcile', 'transactional', 'hold')),
    run                 text    COLLATE "C",
    node                text,
    invocation          text,
    started_at          bigint,
    lease_until         bigint,
    attempt_timeout_ms  bigint  CHECK (attempt_timeout_ms > 0),

    -- The current attempt's end; null while it is open.
    ended_at            bigint,
    verdict             text    CHECK (verdict IN ('performed', 'refused', 'not_performed', 'unknown')),
    send_digest         bytea   CHECK (octet_length(send_digest) = 32),
    key_taken           boolean,

    doubt_attempt       bigint  CHECK (doubt_attempt >= 1 AND doubt_attempt <= attempt),
    doubt_since         bigint,
    doubt_class         text    CHECK (doubt_class IN ('rerun', 'resend', 'reconcile', 'transactional', 'hold')),
    doubt_acts_until    bigint,
    doubt_send_digest   bytea   CHECK (octet_length(doubt_send_digest) = 32),

    accepted_handle     text,
    accepted_poll_after bigint,
    not_before          bigint,

    outcome_kind        text    CHECK (outcome_kind IN ('success', 'refusal')),
    payload             bytea,
    payload_codec       text,
    absent_reason       text    CHECK (absent_reason IN ('expired', 'unencodable', 'too_large')),
    provider_replay     boolean,
    settled_at          bigint,
    retain_until        bigint,

    late_success        boolean NOT NULL DEFAULT false,
    double_suspected    boolean NOT NULL DEFAULT false,
    revision            bigint  NOT NULL DEFAULT 1 CHECK (revision >= 1),

    CONSTRAINT alias_or_effect CHECK (
        CASE WHEN alias_of IS NULL
        THEN operation IS NOT NULL AND keying IS NOT NULL AND provider_key IS NOT NULL AND fingerprints IS NOT NULL
            AND created_at IS NOT NULL AND state IS NOT NULL AND fence IS NOT NULL AND attempt IS NOT NULL
            AND token IS NOT NULL AND class IS NOT NULL AND started_at IS NOT NULL AND lease_until IS NOT NULL
            AND attempt_timeout_ms IS NOT NULL
        ELSE state IS NULL AND fence IS NULL AND attempt IS NULL AND token IS NULL AND payload IS NULL
            AND outcome_kind IS NULL AND alias_of <> uuid_send(digest_head) || digest_tail
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
        CASE WHEN state = 'released' THEN ended_at IS NOT NULL AND doubt_attempt IS NULL ELSE true END),
    CONSTRAINT escaped_is_doubted CHECK (
        CASE WHEN state = 'escaped' THEN doubt_attempt IS NOT NULL ELSE true END)
)
-- Room on each page for the row's next versions, which then need no new index entries.
WITH (fillfactor = 60);

CREATE INDEX effectual_effects_by_alias ON effectual_effects (alias_of) WHERE alias_of IS NOT NULL;
CREATE INDEX effectual_effects_by_run ON effectual_effects (run) WHERE run IS NOT NULL;

-- Closed attempts: written when the effect's attempt number changes, never before.
CREATE TABLE effectual_attempts (
    digest_head         uuid    NOT NULL REFERENCES effectual_effects (digest_head),
    attempt             bigint  NOT NULL CHECK (attempt >= 1),
    fence               bigint  NOT NULL CHECK (fence >= 1),
    token               uuid    NOT NULL,
    class               text    NOT NULL CHECK (class IN ('rerun', 'resend', 'reconcile', 'transactional', 'hold')),
    run                 text    COLLATE "C",
    node                text,
    invocation          text,
    started_at          bigint  NOT NULL,
    lease_until         bigint  NOT NULL,
    attempt_timeout_ms  bigint  NOT NULL,
    ended_at            bigint  NOT NULL,
    verdict             text    NOT NULL CHECK (verdict IN ('performed', 'refused', 'not_performed', 'unknown')),
    send_digest         bytea   CHECK (octet_length(send_digest) = 32),
    key_taken           boolean NOT NULL,
    PRIMARY KEY (digest_head, attempt)
);

CREATE INDEX effectual_attempts_by_run ON effectual_attempts (run) WHERE run IS NOT NULL;

-- The first time a run met an effect that another performed.
CREATE TABLE effectual_touches (
    run                 text    COLLATE "C" NOT NULL,
    digest_head         uuid    NOT NULL REFERENCES effectual_effects (digest_head),
    node                text,
    invocation          text,
    at                  bigint  NOT NULL,
    PRIMARY KEY (run, digest_head)
);

-- Answers that came behind a raised fence, or that a doubt kept from being the outcome.
CREATE TABLE effectual_evidence (
    seq                 bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest_head         uuid    NOT NULL REFERENCES effectual_effects (digest_head),
    attempt             bigint  NOT NULL,
    fence               bigint  NOT NULL,
    at                  bigint  NOT NULL,
    verdict             text    NOT NULL CHECK (verdict IN ('performed', 'refused', 'not_performed', 'unknown')),
    payload             bytea,
    payload_codec       text,
    CHECK ((payload IS NULL) = (payload_codec IS NULL))
);

CREATE INDEX effectual_evidence_by_effect ON effectual_evidence (digest_head);

-- What operators did, and why.
CREATE TABLE effectual_audit (
    seq                 bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest_head         uuid    NOT NULL REFERENCES effectual_effects (digest_head),
    at                  bigint  NOT NULL,
    who                 text    NOT NULL,
    why                 text    NOT NULL,
    action              text    NOT NULL,
    before              text    NOT NULL,
    after               text    NOT NULL
);

CREATE INDEX effectual_audit_by_effect ON effectual_audit (digest_head);
