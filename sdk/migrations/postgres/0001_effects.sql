-- One row per effect, with its current attempt; an alias row for each further identity of an effect.
-- Times are milliseconds since the Unix epoch on the ledger's clock; digests are BLAKE3.
-- The first half of a digest is the key: an index over 16 bytes takes in more claims a second than one over 32. The
-- second half is compared, so that two digests that share a first half are never taken for one effect.
-- Runs are compared by their bytes: an index then survives a change of the system's collation.

-- The rules are those of domains: a session keeps a domain's rules ready to run, and reads the CHECKs of a table anew,
-- as text, for every statement that writes to it. With 25 CHECKs that took longer than the rest of a claim.
CREATE DOMAIN effectual_ordinal AS bigint CHECK (VALUE >= 1);
CREATE DOMAIN effectual_half AS bytea CHECK (octet_length(VALUE) = 16);
CREATE DOMAIN effectual_digest AS bytea CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN effectual_keying AS text CHECK (VALUE IN ('business-identity', 'activity-recipe'));
CREATE DOMAIN effectual_state AS text CHECK (VALUE IN ('claimed', 'completed', 'released', 'escaped'));
CREATE DOMAIN effectual_class AS text
    CHECK (VALUE IN ('rerun', 'resend', 'reconcile', 'transactional', 'hold'));
CREATE DOMAIN effectual_verdict AS text CHECK (VALUE IN ('performed', 'refused', 'not_performed', 'unknown'));
CREATE DOMAIN effectual_outcome AS text CHECK (VALUE IN ('success', 'refusal'));
CREATE DOMAIN effectual_absence AS text CHECK (VALUE IN ('expired', 'unencodable', 'too_large'));

CREATE TABLE effectual_effects (
    -- No number of its own: a sequence would be advanced, and so written, by a claim that finds the row.
    digest_head         uuid    PRIMARY KEY,
    digest_tail         effectual_half NOT NULL,
    tenant              text    NOT NULL,
    -- An alias names the row that holds the effect, and nothing else.
    alias_of            effectual_digest,
    key_version         effectual_ordinal NOT NULL,

    operation           text,
    keying              effectual_keying,
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

    state               effectual_state,
    fence               effectual_ordinal,
    attempt             effectual_ordinal,
    token               uuid,
    class               effectual_class,
    run                 text    COLLATE "C",
    node                text,
    invocation          text,
    started_at          bigint,
    lease_until         bigint,
    attempt_timeout_ms  effectual_ordinal,

    -- The current attempt's end; null while it is open.
    ended_at            bigint,
    verdict             effectual_verdict,
    send_digest         effectual_digest,
    key_taken           boolean,

    doubt_attempt       effectual_ordinal,
    doubt_since         bigint,
    doubt_class         effectual_class,
    doubt_acts_until    bigint,
    doubt_send_digest   effectual_digest,

    accepted_handle     text,
    accepted_poll_after bigint,
    not_before          bigint,

    outcome_kind        effectual_outcome,
    payload             bytea,
    payload_codec       text,
    absent_reason       effectual_absence,
    provider_replay     boolean,
    settled_at          bigint,
    retain_until        bigint,

    late_success        boolean NOT NULL DEFAULT false,
    double_suspected    boolean NOT NULL DEFAULT false,
    revision            effectual_ordinal NOT NULL DEFAULT 1
)
-- Room on each page for the row's next versions, which then need no new index entries.
WITH (fillfactor = 60);

-- What holds between the columns of a row. An unknown comparison lets a row pass: hence CASE, and counts of nulls.
CREATE DOMAIN effectual_effect AS effectual_effects
    CONSTRAINT alias_or_effect CHECK (
        CASE WHEN (VALUE).alias_of IS NULL
        THEN num_nulls((VALUE).operation, (VALUE).keying, (VALUE).provider_key, (VALUE).fingerprints,
            (VALUE).created_at, (VALUE).state, (VALUE).fence, (VALUE).attempt, (VALUE).token, (VALUE).class,
            (VALUE).started_at, (VALUE).lease_until, (VALUE).attempt_timeout_ms) = 0
        ELSE num_nonnulls((VALUE).state, (VALUE).fence, (VALUE).attempt, (VALUE).token, (VALUE).payload,
            (VALUE).outcome_kind) = 0
            AND (VALUE).alias_of <> uuid_send((VALUE).digest_head) || (VALUE).digest_tail
        END)
    CONSTRAINT end_whole CHECK (
        num_nulls((VALUE).ended_at, (VALUE).verdict, (VALUE).key_taken) IN (0, 3)
        AND ((VALUE).ended_at IS NOT NULL OR (VALUE).send_digest IS NULL))
    CONSTRAINT doubt_whole CHECK (
        num_nulls((VALUE).doubt_attempt, (VALUE).doubt_since, (VALUE).doubt_class, (VALUE).doubt_acts_until) IN (0, 4)
        AND ((VALUE).doubt_attempt IS NOT NULL OR (VALUE).doubt_send_digest IS NULL))
    CONSTRAINT doubt_of_an_attempt CHECK ((VALUE).doubt_attempt <= (VALUE).attempt)
    CONSTRAINT accepted_whole CHECK (num_nulls((VALUE).accepted_handle, (VALUE).accepted_poll_after) <> 1)
    CONSTRAINT input_whole CHECK (num_nulls((VALUE).input, (VALUE).input_codec) <> 1)
    CONSTRAINT completed_has_outcome CHECK (
        CASE WHEN (VALUE).state = 'completed'
        THEN num_nulls((VALUE).outcome_kind, (VALUE).provider_replay, (VALUE).settled_at, (VALUE).retain_until,
            (VALUE).ended_at, (VALUE).verdict) = 0
            AND num_nulls((VALUE).payload, (VALUE).absent_reason) = 1
            AND num_nulls((VALUE).payload, (VALUE).payload_codec) <> 1 AND (VALUE).doubt_attempt IS NULL
            AND (VALUE).verdict = CASE (VALUE).outcome_kind WHEN 'success' THEN 'performed' ELSE 'refused' END
        ELSE num_nonnulls((VALUE).outcome_kind, (VALUE).payload, (VALUE).payload_codec, (VALUE).absent_reason,
            (VALUE).provider_replay, (VALUE).settled_at, (VALUE).retain_until) = 0
        END)
    CONSTRAINT released_is_known CHECK (
        CASE WHEN (VALUE).state = 'released'
        THEN (VALUE).ended_at IS NOT NULL AND (VALUE).doubt_attempt IS NULL ELSE true END)
    CONSTRAINT escaped_is_doubted CHECK (
        CASE WHEN (VALUE).state = 'escaped' THEN (VALUE).doubt_attempt IS NOT NULL ELSE true END);

-- The cast is what refuses; a whole row is never null.
ALTER TABLE effectual_effects ADD CONSTRAINT is_an_effect
    CHECK (num_nulls(effectual_effects::effectual_effect) = 0);

CREATE INDEX effectual_effects_by_alias ON effectual_effects (alias_of) WHERE alias_of IS NOT NULL;
CREATE INDEX effectual_effects_by_run ON effectual_effects (run) WHERE run IS NOT NULL;

-- Closed attempts: written when the effect's attempt number changes, never before.
CREATE TABLE effectual_attempts (
    digest_head         uuid    NOT NULL REFERENCES effectual_effects (digest_head),
    attempt             effectual_ordinal NOT NULL,
    fence               effectual_ordinal NOT NULL,
    token               uuid    NOT NULL,
    class               effectual_class NOT NULL,
    run                 text    COLLATE "C",
    node                text,
    invocation          text,
    started_at          bigint  NOT NULL,
    lease_until         bigint  NOT NULL,
    attempt_timeout_ms  bigint  NOT NULL,
    ended_at            bigint  NOT NULL,
    verdict             effectual_verdict NOT NULL,
    send_digest         effectual_digest,
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
    verdict             effectual_verdict NOT NULL,
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
