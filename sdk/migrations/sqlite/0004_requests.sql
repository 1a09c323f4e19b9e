-- One row for a tenant, an endpoint and a caller's idempotency key; the key itself is not kept.
-- Apart from the effects: what the host makes never meets what callers send.
CREATE TABLE effectual_requests (
    -- BLAKE3 over tenant, endpoint and key.
    digest              BLOB    NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    tenant              TEXT    NOT NULL,
    endpoint            TEXT    NOT NULL,
    fingerprint         BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    principal           BLOB    CHECK (length(principal) = 32),

    state               TEXT    NOT NULL CHECK (state IN ('pending', 'final', 'unavailable', 'retryable')),
    fence               INTEGER NOT NULL CHECK (fence >= 1),
    token               BLOB    NOT NULL CHECK (length(token) = 16),
    ran_before          INTEGER NOT NULL CHECK (ran_before IN (0, 1)),
    started_at          INTEGER NOT NULL,
    lease_until         INTEGER,
    ended_at            INTEGER,
    retain_until        INTEGER NOT NULL,

    status              INTEGER CHECK (status BETWEEN 100 AND 999),
    headers             BLOB,
    body                BLOB,
    absent_reason       TEXT    CHECK (absent_reason IN ('too_large', 'streamed')),
    revision            INTEGER NOT NULL CHECK (revision >= 1),

    CONSTRAINT pending_has_lease CHECK ((state = 'pending') = (lease_until IS NOT NULL)),
    CONSTRAINT ended_unless_pending CHECK ((state = 'pending') = (ended_at IS NULL)),
    CONSTRAINT final_has_answer CHECK (
        (state = 'final') = (status IS NOT NULL) AND (state = 'final') = (headers IS NOT NULL)
        AND (state = 'final') = (body IS NOT NULL)),
    CONSTRAINT unavailable_has_reason CHECK ((state = 'unavailable') = (absent_reason IS NOT NULL))
);

CREATE INDEX effectual_requests_by_retention ON effectual_requests (retain_until);
