-- The same rules for an effect's row, in the form that costs SQLite least. `IN` with three values or more builds a table of them
-- for every row that is written, which was most of what a write cost; and where rules are joined by AND and OR, each null test is
-- a jump. An UPDATE leaves a rule out if it sets none of its columns, so that those stand together that are written together.
--
-- Rows need no change, and a copy of a large table would take minutes. So the table's text is replaced, as SQLite's page on ALTER
-- TABLE describes for CHECK constraints, by one that SQLite itself has read and taken. What drops the second table makes every open
-- connection read the schema again. The columns, their order, types and defaults are those of 0001.
CREATE TABLE effectual_effects_next (
    seq                 INTEGER PRIMARY KEY,
    digest              BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    tenant              TEXT    NOT NULL,
    -- An alias names the row that holds the effect, and nothing else.
    alias_of            BLOB    REFERENCES effectual_effects (digest),
    key_version         INTEGER NOT NULL CHECK (key_version >= 1),

    operation           TEXT,
    keying              TEXT,
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

    state               TEXT,
    fence               INTEGER CHECK (fence >= 1),
    attempt             INTEGER CHECK (attempt >= 1),
    token               BLOB    CHECK (length(token) = 16),
    class               TEXT    CHECK (
        class = 'rerun' OR class = 'resend' OR class = 'reconcile' OR class = 'transactional' OR class = 'hold'),
    run                 TEXT,
    node                TEXT,
    invocation          TEXT,
    started_at          INTEGER,
    lease_until         INTEGER,
    attempt_timeout_ms  INTEGER CHECK (attempt_timeout_ms > 0),

    -- The current attempt's end; null while it is open.
    ended_at            INTEGER,
    verdict             TEXT,
    send_digest         BLOB,
    key_taken           INTEGER,

    doubt_attempt       INTEGER,
    doubt_since         INTEGER,
    doubt_class         TEXT,
    doubt_acts_until    INTEGER,
    doubt_send_digest   BLOB,

    accepted_handle     TEXT,
    accepted_poll_after INTEGER,
    not_before          INTEGER,

    outcome_kind        TEXT,
    payload             BLOB,
    payload_codec       TEXT,
    absent_reason       TEXT,
    provider_replay     INTEGER,
    settled_at          INTEGER,
    retain_until        INTEGER,

    late_success        INTEGER NOT NULL DEFAULT 0 CHECK (late_success = 0 OR late_success = 1),
    double_suspected    INTEGER NOT NULL DEFAULT 0 CHECK (double_suspected = 0 OR double_suspected = 1),
    revision            INTEGER NOT NULL DEFAULT 1 CHECK (revision >= 1),

    -- What a first claim writes and no change touches.
    CONSTRAINT alias_or_effect CHECK (
        (alias_of IS NULL AND operation IS NOT NULL AND (keying IS 'business-identity' OR keying IS 'activity-recipe')
            AND provider_key IS NOT NULL AND fingerprints IS NOT NULL AND created_at IS NOT NULL)
        OR (alias_of IS NOT NULL AND length(alias_of) = 32 AND alias_of <> digest
            AND (keying = 'business-identity' OR keying = 'activity-recipe'))),
    -- What a new attempt writes.
    CONSTRAINT alias_or_attempt CHECK (
        (alias_of IS NULL AND fence IS NOT NULL AND attempt IS NOT NULL AND token IS NOT NULL AND class IS NOT NULL
            AND started_at IS NOT NULL AND attempt_timeout_ms IS NOT NULL)
        OR (alias_of IS NOT NULL AND fence IS NULL AND attempt IS NULL AND token IS NULL)),
    -- What a renewal writes.
    CONSTRAINT alias_or_leased CHECK (alias_of IS NOT NULL OR lease_until IS NOT NULL),
    CONSTRAINT end_whole CHECK (
        (ended_at IS NULL AND verdict IS NULL AND key_taken IS NULL AND send_digest IS NULL)
        OR (ended_at IS NOT NULL
            AND (verdict IS 'performed' OR verdict IS 'refused' OR verdict IS 'not_performed' OR verdict IS 'unknown')
            AND (key_taken IS 0 OR key_taken IS 1) AND (send_digest IS NULL OR length(send_digest) = 32))),
    CONSTRAINT doubt_whole CHECK (
        (doubt_attempt IS NULL AND doubt_since IS NULL AND doubt_class IS NULL AND doubt_acts_until IS NULL
            AND doubt_send_digest IS NULL)
        OR (doubt_attempt IS NOT NULL AND doubt_attempt >= 1 AND doubt_attempt <= attempt AND doubt_since IS NOT NULL
            AND doubt_acts_until IS NOT NULL
            AND (doubt_class IS 'rerun' OR doubt_class IS 'resend' OR doubt_class IS 'reconcile'
                OR doubt_class IS 'transactional' OR doubt_class IS 'hold')
            AND (doubt_send_digest IS NULL OR length(doubt_send_digest) = 32))),
    CONSTRAINT accepted_whole CHECK (
        (accepted_handle IS NULL AND accepted_poll_after IS NULL)
        OR (accepted_handle IS NOT NULL AND accepted_poll_after IS NOT NULL)),
    CONSTRAINT input_whole CHECK (
        (input IS NULL AND input_codec IS NULL) OR (input IS NOT NULL AND input_codec IS NOT NULL)),
    -- `IS` with a value is never null, which a CHECK would let pass.
    CONSTRAINT state_whole CHECK (
        (outcome_kind IS NULL AND payload IS NULL AND payload_codec IS NULL AND absent_reason IS NULL
            AND provider_replay IS NULL AND settled_at IS NULL AND retain_until IS NULL
            AND ((state IS 'claimed' AND alias_of IS NULL)
                OR (state IS 'escaped' AND alias_of IS NULL AND doubt_attempt IS NOT NULL)
                OR (state IS 'released' AND alias_of IS NULL AND doubt_attempt IS NULL AND ended_at IS NOT NULL)
                OR (state IS NULL AND alias_of IS NOT NULL)))
        OR (state IS 'completed' AND alias_of IS NULL
            AND ((outcome_kind IS 'success' AND verdict IS 'performed')
                OR (outcome_kind IS 'refusal' AND verdict IS 'refused'))
            AND ((payload IS NOT NULL AND payload_codec IS NOT NULL AND absent_reason IS NULL)
                OR (payload IS NULL AND payload_codec IS NULL
                    AND (absent_reason IS 'expired' OR absent_reason IS 'unencodable' OR absent_reason IS 'too_large')))
            AND (provider_replay IS 0 OR provider_replay IS 1) AND settled_at IS NOT NULL AND retain_until IS NOT NULL
            AND ended_at IS NOT NULL AND doubt_attempt IS NULL))
);

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = (SELECT replace(next.sql, 'effectual_effects_next', 'effectual_effects')
    FROM sqlite_schema AS next WHERE next.type = 'table' AND next.name = 'effectual_effects_next')
    WHERE type = 'table' AND name = 'effectual_effects';
DROP TABLE effectual_effects_next;
PRAGMA writable_schema = RESET;
