-- One row for a tenant, an endpoint and a caller's idempotency key; the key itself is not kept.
-- Apart from the effects: what the host makes never meets what callers send.
CREATE DOMAIN effectual_request_state AS text
    CHECK (VALUE IN ('pending', 'final', 'unavailable', 'retryable'));
CREATE DOMAIN effectual_request_absence AS text CHECK (VALUE IN ('too_large', 'streamed'));

CREATE TABLE effectual_requests (
    -- BLAKE3 over tenant, endpoint and key.
    digest              effectual_digest PRIMARY KEY,
    tenant              text    NOT NULL,
    endpoint            text    NOT NULL,
    fingerprint         effectual_digest NOT NULL,
    principal           effectual_digest,

    state               effectual_request_state NOT NULL,
    fence               effectual_ordinal NOT NULL,
    token               uuid    NOT NULL,
    ran_before          boolean NOT NULL,
    started_at          bigint  NOT NULL,
    lease_until         bigint,
    ended_at            bigint,
    retain_until        bigint  NOT NULL,

    status              integer,
    headers             bytea,
    body                bytea,
    absent_reason       effectual_request_absence,
    revision            effectual_ordinal NOT NULL
)
-- Room on each page for the row's next versions, which then need no new index entries.
WITH (fillfactor = 60);

CREATE DOMAIN effectual_request AS effectual_requests
    CONSTRAINT state_is_whole CHECK (
        ((VALUE).state = 'pending') = ((VALUE).lease_until IS NOT NULL)
        AND ((VALUE).state = 'pending') = ((VALUE).ended_at IS NULL)
        AND num_nonnulls((VALUE).status, (VALUE).headers, (VALUE).body) = CASE (VALUE).state WHEN 'final' THEN 3 ELSE 0 END
        AND ((VALUE).state = 'unavailable') = ((VALUE).absent_reason IS NOT NULL));

-- The cast is what refuses; a whole row is never null.
ALTER TABLE effectual_requests ADD CONSTRAINT is_a_request
    CHECK (num_nulls(effectual_requests::effectual_request) = 0);

CREATE INDEX effectual_requests_by_retention ON effectual_requests (retain_until);
