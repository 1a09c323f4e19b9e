-- A ledger as the first release wrote it (schema 1, values in `json/1`), dumped; times are of 2026-11-30.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE DOMAIN public.effectual_absence AS text
	CONSTRAINT effectual_absence_check CHECK ((VALUE = ANY (ARRAY['expired'::text, 'unencodable'::text, 'too_large'::text])));

CREATE DOMAIN public.effectual_class AS text
	CONSTRAINT effectual_class_check CHECK ((VALUE = ANY (ARRAY['rerun'::text, 'resend'::text, 'reconcile'::text, 'transactional'::text, 'hold'::text])));

CREATE DOMAIN public.effectual_digest AS bytea
	CONSTRAINT effectual_digest_check CHECK ((octet_length(VALUE) = 32));

CREATE DOMAIN public.effectual_half AS bytea
	CONSTRAINT effectual_half_check CHECK ((octet_length(VALUE) = 16));

CREATE DOMAIN public.effectual_keying AS text
	CONSTRAINT effectual_keying_check CHECK ((VALUE = ANY (ARRAY['business-identity'::text, 'activity-recipe'::text])));

CREATE DOMAIN public.effectual_ordinal AS bigint
	CONSTRAINT effectual_ordinal_check CHECK ((VALUE >= 1));

CREATE DOMAIN public.effectual_outcome AS text
	CONSTRAINT effectual_outcome_check CHECK ((VALUE = ANY (ARRAY['success'::text, 'refusal'::text])));

CREATE DOMAIN public.effectual_state AS text
	CONSTRAINT effectual_state_check CHECK ((VALUE = ANY (ARRAY['claimed'::text, 'completed'::text, 'released'::text, 'escaped'::text])));

CREATE DOMAIN public.effectual_verdict AS text
	CONSTRAINT effectual_verdict_check CHECK ((VALUE = ANY (ARRAY['performed'::text, 'refused'::text, 'not_performed'::text, 'unknown'::text])));

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.effectual_effects (
    digest_head uuid NOT NULL,
    digest_tail public.effectual_half NOT NULL,
    tenant text NOT NULL,
    alias_of public.effectual_digest,
    key_version public.effectual_ordinal NOT NULL,
    operation text,
    keying public.effectual_keying,
    readable text,
    provider text,
    provider_key text,
    fingerprints text,
    created_at bigint,
    first_send_at bigint,
    input bytea,
    input_codec text,
    state public.effectual_state,
    fence public.effectual_ordinal,
    attempt public.effectual_ordinal,
    token uuid,
    class public.effectual_class,
    run text COLLATE pg_catalog."C",
    node text,
    invocation text,
    started_at bigint,
    lease_until bigint,
    attempt_timeout_ms public.effectual_ordinal,
    ended_at bigint,
    verdict public.effectual_verdict,
    send_digest public.effectual_digest,
    key_taken boolean,
    doubt_attempt public.effectual_ordinal,
    doubt_since bigint,
    doubt_class public.effectual_class,
    doubt_acts_until bigint,
    doubt_send_digest public.effectual_digest,
    accepted_handle text,
    accepted_poll_after bigint,
    not_before bigint,
    outcome_kind public.effectual_outcome,
    payload bytea,
    payload_codec text,
    absent_reason public.effectual_absence,
    provider_replay boolean,
    settled_at bigint,
    retain_until bigint,
    late_success boolean DEFAULT false NOT NULL,
    double_suspected boolean DEFAULT false NOT NULL,
    revision public.effectual_ordinal DEFAULT 1 NOT NULL
)
WITH (fillfactor='60');

CREATE DOMAIN public.effectual_effect AS public.effectual_effects
	CONSTRAINT accepted_whole CHECK ((num_nulls((VALUE).accepted_handle, (VALUE).accepted_poll_after) <> 1))
	CONSTRAINT alias_or_effect CHECK (
CASE
    WHEN ((VALUE).alias_of IS NULL) THEN (num_nulls((VALUE).operation, (VALUE).keying, (VALUE).provider_key, (VALUE).fingerprints, (VALUE).created_at, (VALUE).state, (VALUE).fence, (VALUE).attempt, (VALUE).token, (VALUE).class, (VALUE).started_at, (VALUE).lease_until, (VALUE).attempt_timeout_ms) = 0)
    ELSE ((num_nonnulls((VALUE).state, (VALUE).fence, (VALUE).attempt, (VALUE).token, (VALUE).payload, (VALUE).outcome_kind) = 0) AND (((VALUE).alias_of)::bytea <> (uuid_send((VALUE).digest_head) || ((VALUE).digest_tail)::bytea)))
END)
	CONSTRAINT completed_has_outcome CHECK (
CASE
    WHEN (((VALUE).state)::text = 'completed'::text) THEN ((num_nulls((VALUE).outcome_kind, (VALUE).provider_replay, (VALUE).settled_at, (VALUE).retain_until, (VALUE).ended_at, (VALUE).verdict) = 0) AND (num_nulls((VALUE).payload, (VALUE).absent_reason) = 1) AND (num_nulls((VALUE).payload, (VALUE).payload_codec) <> 1) AND ((VALUE).doubt_attempt IS NULL) AND (((VALUE).verdict)::text =
    CASE (VALUE).outcome_kind
        WHEN 'success'::text THEN 'performed'::text
        ELSE 'refused'::text
    END))
    ELSE (num_nonnulls((VALUE).outcome_kind, (VALUE).payload, (VALUE).payload_codec, (VALUE).absent_reason, (VALUE).provider_replay, (VALUE).settled_at, (VALUE).retain_until) = 0)
END)
	CONSTRAINT doubt_of_an_attempt CHECK ((((VALUE).doubt_attempt)::bigint <= ((VALUE).attempt)::bigint))
	CONSTRAINT doubt_whole CHECK (((num_nulls((VALUE).doubt_attempt, (VALUE).doubt_since, (VALUE).doubt_class, (VALUE).doubt_acts_until) = ANY (ARRAY[0, 4])) AND (((VALUE).doubt_attempt IS NOT NULL) OR ((VALUE).doubt_send_digest IS NULL))))
	CONSTRAINT end_whole CHECK (((num_nulls((VALUE).ended_at, (VALUE).verdict, (VALUE).key_taken) = ANY (ARRAY[0, 3])) AND (((VALUE).ended_at IS NOT NULL) OR ((VALUE).send_digest IS NULL))))
	CONSTRAINT escaped_is_doubted CHECK (
CASE
    WHEN (((VALUE).state)::text = 'escaped'::text) THEN ((VALUE).doubt_attempt IS NOT NULL)
    ELSE true
END)
	CONSTRAINT input_whole CHECK ((num_nulls((VALUE).input, (VALUE).input_codec) <> 1))
	CONSTRAINT released_is_known CHECK (
CASE
    WHEN (((VALUE).state)::text = 'released'::text) THEN (((VALUE).ended_at IS NOT NULL) AND ((VALUE).doubt_attempt IS NULL))
    ELSE true
END);

CREATE TABLE public.effectual_attempts (
    digest_head uuid NOT NULL,
    attempt public.effectual_ordinal NOT NULL,
    fence public.effectual_ordinal NOT NULL,
    token uuid NOT NULL,
    class public.effectual_class NOT NULL,
    run text COLLATE pg_catalog."C",
    node text,
    invocation text,
    started_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    attempt_timeout_ms bigint NOT NULL,
    ended_at bigint NOT NULL,
    verdict public.effectual_verdict NOT NULL,
    send_digest public.effectual_digest,
    key_taken boolean NOT NULL
);

CREATE TABLE public.effectual_audit (
    seq bigint NOT NULL,
    digest_head uuid NOT NULL,
    at bigint NOT NULL,
    who text NOT NULL,
    why text NOT NULL,
    action text NOT NULL,
    before text NOT NULL,
    after text NOT NULL
);

ALTER TABLE public.effectual_audit ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.effectual_audit_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.effectual_evidence (
    seq bigint NOT NULL,
    digest_head uuid NOT NULL,
    attempt bigint NOT NULL,
    fence bigint NOT NULL,
    at bigint NOT NULL,
    verdict public.effectual_verdict NOT NULL,
    payload bytea,
    payload_codec text,
    CONSTRAINT effectual_evidence_check CHECK (((payload IS NULL) = (payload_codec IS NULL)))
);

ALTER TABLE public.effectual_evidence ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.effectual_evidence_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.effectual_schema (
    is_only boolean DEFAULT true NOT NULL,
    version integer NOT NULL,
    CONSTRAINT effectual_schema_is_only_check CHECK (is_only),
    CONSTRAINT effectual_schema_version_check CHECK ((version >= 0))
);

CREATE TABLE public.effectual_touches (
    run text NOT NULL COLLATE pg_catalog."C",
    digest_head uuid NOT NULL,
    node text,
    invocation text,
    at bigint NOT NULL
);

INSERT INTO public.effectual_attempts VALUES ('c014ae23-a761-7d23-b39b-08c9da78dd2f', 1, 1, 'c6c48762-92e7-476c-a51e-7445e67784a2', 'rerun', NULL, NULL, NULL, 1796079468513, 1796079528513, 15000, 1796079468519, 'unknown', NULL, true);

INSERT INTO public.effectual_effects VALUES ('b29957f7-0c18-065b-86b5-b7e24e0ce66e', '\xbd9f0a85d8ce2ee566cfacc8cb442fc7', 'acme', NULL, 1, 'compat-same', 'business-identity', 'order=…id', NULL, '2f1a438d-2bcf-4464-b9ce-1a714b460221', '[["order","1189f660d826783fb2c827089de4b818b1a8f4d222628a842dddbf2dd9cb0150"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468167, NULL, NULL, NULL, 'completed', 1, 1, '310fe5ae-8202-4c9e-b122-63090fbe95d2', 'hold', NULL, NULL, NULL, 1796079468167, 1796079468199, 15000, 1796079468199, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a2250616964222c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468199, 1798671468199, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('efeeae8c-81aa-521f-3678-3251d5bc8bc6', '\xf5929472a0a30574e4b3959046a08cec', 'acme', NULL, 1, 'compat-wider', 'business-identity', 'order=…id', NULL, 'af02e944-9588-4055-b626-9325d336f8db', '[["order","1189f660d826783fb2c827089de4b818b1a8f4d222628a842dddbf2dd9cb0150"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468228, NULL, NULL, NULL, 'completed', 1, 1, 'e8acd647-21e1-44fc-a3f2-c5213c0766b9', 'hold', NULL, NULL, NULL, 1796079468228, 1796079468234, 15000, 1796079468234, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a2250616964222c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468234, 1798671468234, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('c1724c32-8f6e-5de2-2316-594404b74c96', '\x15edb60b503fa64f53dc60621048e6ff', 'acme', NULL, 1, 'compat-aliased', 'business-identity', 'order=…id', NULL, '88d2551d-5c3d-427d-80a8-418b604ba8b0', '[["order","1189f660d826783fb2c827089de4b818b1a8f4d222628a842dddbf2dd9cb0150"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468244, NULL, NULL, NULL, 'completed', 1, 1, '8dc38b63-4a99-4e4e-97d1-b135080ffaf5', 'hold', NULL, NULL, NULL, 1796079468244, 1796079468253, 15000, 1796079468253, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a2250616964222c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468253, 1798671468253, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('77735fd5-47e7-7cb3-1723-8619c4cdc3e9', '\x12fc64b603f6370145ecc5fdcc73097c', 'acme', NULL, 1, 'compat-renamed', 'business-identity', 'order=…id', NULL, '2967cd79-5b1a-408e-8140-c3a3af9f7bae', '[["order","1189f660d826783fb2c827089de4b818b1a8f4d222628a842dddbf2dd9cb0150"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468262, NULL, NULL, NULL, 'completed', 1, 1, '01baf0a2-7d41-40fa-93a3-b6f6f2c5cb69', 'hold', NULL, NULL, NULL, 1796079468262, 1796079468269, 15000, 1796079468269, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a2250616964222c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468269, 1798671468269, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('a9a990f8-2eff-935c-c9a8-f656eda97215', '\x2e91f09620b9eeadc722212600e5dcce', 'acme', NULL, 1, 'compat-retyped', 'business-identity', 'order=…id', NULL, '93c0b42a-cf55-4d45-a9eb-46523a8f41e6', '[["order","1189f660d826783fb2c827089de4b818b1a8f4d222628a842dddbf2dd9cb0150"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468273, NULL, NULL, NULL, 'completed', 1, 1, 'b69f8ecd-130f-489c-91be-7599f4f2b667', 'hold', NULL, NULL, NULL, 1796079468273, 1796079468275, 15000, 1796079468275, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a2250616964222c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468275, 1798671468275, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('74d49ea5-63c1-53f0-917a-aac911c0304c', '\xf4342083c23094528136399fbe2075b7', 'acme', NULL, 1, 'compat-same', 'business-identity', 'order=…tly', NULL, 'fa3f1c8a-c785-492d-ab9c-9aa5fe70ef1b', '[["order","23ed78c1ad685975b2bdf621ebac1125e6f8ef5333d8037dacd3d01d5756b37c"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468292, NULL, NULL, NULL, 'completed', 1, 1, '00a17c1f-561c-4dce-afc4-82d8175f5ba5', 'hold', NULL, NULL, NULL, 1796079468292, 1796079468301, 15000, 1796079468301, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a7b22506172746c7950616964223a7b2263656e7473223a34307d7d2c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468301, 1798671468301, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('a17c390f-219a-e458-3af8-229fe6bc9e63', '\x73bbe28483d38a0aecb79d3c5702483d', 'acme', NULL, 1, 'compat-wider', 'business-identity', 'order=…tly', NULL, 'd730b1e3-08fd-4ac7-88c5-79977b3494d8', '[["order","23ed78c1ad685975b2bdf621ebac1125e6f8ef5333d8037dacd3d01d5756b37c"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468304, NULL, NULL, NULL, 'completed', 1, 1, '87f17e36-54a7-4ddb-a2c3-c5952e78a83c', 'hold', NULL, NULL, NULL, 1796079468304, 1796079468317, 15000, 1796079468317, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a7b22506172746c7950616964223a7b2263656e7473223a34307d7d2c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468317, 1798671468317, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('c50984c6-5b89-d51a-0979-eb2c2ac69fb2', '\x3c7f0d86ca4888c64b27e48d6a99658c', 'acme', NULL, 1, 'compat-aliased', 'business-identity', 'order=…tly', NULL, '5e43aa02-a452-4899-90ed-098054c07d8c', '[["order","23ed78c1ad685975b2bdf621ebac1125e6f8ef5333d8037dacd3d01d5756b37c"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468319, NULL, NULL, NULL, 'completed', 1, 1, '8c0e0cdb-6180-48d0-b42e-986af8e388cf', 'hold', NULL, NULL, NULL, 1796079468319, 1796079468330, 15000, 1796079468330, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a7b22506172746c7950616964223a7b2263656e7473223a34307d7d2c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468330, 1798671468330, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('1e31b573-8ec7-ee46-d11a-25d5b5d7e3e8', '\x361c092eaefd19073156890e2f871786', 'acme', NULL, 1, 'compat-renamed', 'business-identity', 'order=…tly', NULL, '09076149-abf5-402b-a2c1-270f9ac80a3f', '[["order","23ed78c1ad685975b2bdf621ebac1125e6f8ef5333d8037dacd3d01d5756b37c"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468332, NULL, NULL, NULL, 'completed', 1, 1, 'cc9f364d-6178-46c2-97c7-de773cef1872', 'hold', NULL, NULL, NULL, 1796079468332, 1796079468338, 15000, 1796079468338, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a7b22506172746c7950616964223a7b2263656e7473223a34307d7d2c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468338, 1798671468338, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('c1e5a456-a2b9-f730-a2f4-1e1c3697ca80', '\xe7d48fc50cf94fa219cc605594fbf62a', 'acme', NULL, 1, 'compat-retyped', 'business-identity', 'order=…tly', NULL, '97733bf1-c43f-4d68-8bdb-7484bd67d3fb', '[["order","23ed78c1ad685975b2bdf621ebac1125e6f8ef5333d8037dacd3d01d5756b37c"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468352, NULL, NULL, NULL, 'completed', 1, 1, '1d72f702-1a37-421b-8e93-be7c0064ed88', 'hold', NULL, NULL, NULL, 1796079468352, 1796079468371, 15000, 1796079468371, 'performed', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a372c227374617465223a7b22506172746c7950616964223a7b2263656e7473223a34307d7d2c226e6f7465223a227468616e6b20796f75227d', 'json/1', NULL, false, 1796079468371, 1798671468371, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('5847a261-911c-0de0-f506-6ccbc208786f', '\x5d87476c3ff39bde32ba2d71569847ef', 'acme', NULL, 1, 'compat-same', 'business-identity', 'order=…ined', NULL, '130c31de-c286-4630-8bca-576cb19395b6', '[["order","aea2325d50165ba365852de96322e1c24d7542b3d1dd10f95dc238652f7ec2ff"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468373, NULL, NULL, NULL, 'completed', 1, 1, 'c57ba202-71bb-4c2e-8029-9720159b5b57', 'hold', NULL, NULL, NULL, 1796079468373, 1796079468376, 15000, 1796079468376, 'refused', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'refusal', '\x7b224465636c696e6564223a7b22636f6465223a22696e73756666696369656e745f66756e6473227d7d', 'json/1', NULL, false, 1796079468376, 1798671468376, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('ebc84c82-a071-8a0d-8c91-8b9223a9fdeb', '\xcf7d2ef1d8210b5d7e016e4831628e3f', 'acme', NULL, 1, 'compat-wider', 'business-identity', 'order=…ined', NULL, '974dfb7e-960e-4c50-82dc-3c7a233d1e47', '[["order","aea2325d50165ba365852de96322e1c24d7542b3d1dd10f95dc238652f7ec2ff"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468384, NULL, NULL, NULL, 'completed', 1, 1, 'b7c591c3-701a-470c-9df4-4e308aba4132', 'hold', NULL, NULL, NULL, 1796079468384, 1796079468391, 15000, 1796079468391, 'refused', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'refusal', '\x7b224465636c696e6564223a7b22636f6465223a22696e73756666696369656e745f66756e6473227d7d', 'json/1', NULL, false, 1796079468391, 1798671468391, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('7f100edb-ce0a-fa56-f21b-6a55f47109e5', '\x829b3fc67d241d2631fc6d7768fbf09a', 'acme', NULL, 1, 'compat-aliased', 'business-identity', 'order=…ined', NULL, '9e622c53-6ea0-4023-a9f3-331b3b9b7f32', '[["order","aea2325d50165ba365852de96322e1c24d7542b3d1dd10f95dc238652f7ec2ff"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468396, NULL, NULL, NULL, 'completed', 1, 1, 'ad80d922-f353-45d8-aa07-1c8d51c59600', 'hold', NULL, NULL, NULL, 1796079468396, 1796079468409, 15000, 1796079468409, 'refused', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'refusal', '\x7b224465636c696e6564223a7b22636f6465223a22696e73756666696369656e745f66756e6473227d7d', 'json/1', NULL, false, 1796079468409, 1798671468409, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('888258cc-07de-a4cc-060c-1e9b6e089fb1', '\xfcc6c2a6fb34720063e7175463465f50', 'acme', NULL, 1, 'compat-renamed', 'business-identity', 'order=…ined', NULL, '5945ed2e-3292-4da3-b613-135eb5b4b8e4', '[["order","aea2325d50165ba365852de96322e1c24d7542b3d1dd10f95dc238652f7ec2ff"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468420, NULL, NULL, NULL, 'completed', 1, 1, '0979c360-28b1-4b4a-9123-afb01740343d', 'hold', NULL, NULL, NULL, 1796079468420, 1796079468432, 15000, 1796079468432, 'refused', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'refusal', '\x7b224465636c696e6564223a7b22636f6465223a22696e73756666696369656e745f66756e6473227d7d', 'json/1', NULL, false, 1796079468432, 1798671468432, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('f13e03d1-26ae-aa91-8657-6449ff78069a', '\xa6d127bcf59595139184a6b188df9cde', 'acme', NULL, 1, 'compat-retyped', 'business-identity', 'order=…ined', NULL, '3326e15f-250d-44fb-9093-f5699ba2425f', '[["order","aea2325d50165ba365852de96322e1c24d7542b3d1dd10f95dc238652f7ec2ff"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468444, NULL, NULL, NULL, 'completed', 1, 1, '846d69c6-7b68-4319-a6a9-b48bc9687f91', 'hold', NULL, NULL, NULL, 1796079468444, 1796079468457, 15000, 1796079468457, 'refused', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'refusal', '\x7b224465636c696e6564223a7b22636f6465223a22696e73756666696369656e745f66756e6473227d7d', 'json/1', NULL, false, 1796079468457, 1798671468457, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('6f709b51-b624-c0e8-69e4-785be65a5278', '\xc8dedbeceef936363f5629845f8fefa4', 'acme', NULL, 1, 'compat-same', 'business-identity', 'order=…st', NULL, 'b75d2be6-c740-4694-8995-47bbac2f3daf', '[["order","bc408c84c71b30b657251caacfdf71a1f7cdec7c419f88683d27366fa3a95142"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468462, NULL, NULL, NULL, 'escaped', 1, 1, 'e30aebd7-f3ab-4d18-85b4-78c2db99cf8b', 'hold', NULL, NULL, NULL, 1796079468462, 1796079468465, 15000, 1796079468465, 'unknown', NULL, false, 1, 1796079468462, 'hold', 1796079483465, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('4d6c7d56-7bf8-c237-d970-4fb4b7dece75', '\x14d6ccc2b6555612c56450436cf1e60e', 'acme', NULL, 1, 'compat-wider', 'business-identity', 'order=…st', NULL, 'e60a2a7b-88f2-4ef5-a5ee-0863383d4a99', '[["order","bc408c84c71b30b657251caacfdf71a1f7cdec7c419f88683d27366fa3a95142"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468466, NULL, NULL, NULL, 'escaped', 1, 1, '3c29ea6c-f06e-4097-b81e-5e9fb40b4179', 'hold', NULL, NULL, NULL, 1796079468466, 1796079468467, 15000, 1796079468467, 'unknown', NULL, false, 1, 1796079468466, 'hold', 1796079483467, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('5243b6d3-536c-8f9e-4410-23ca7fa96f9d', '\x4d85398d5f0ac8848d4b4dcfc55b306f', 'acme', NULL, 1, 'compat-aliased', 'business-identity', 'order=…st', NULL, '19e41e84-dd8a-4524-9362-d9939329ee64', '[["order","bc408c84c71b30b657251caacfdf71a1f7cdec7c419f88683d27366fa3a95142"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468469, NULL, NULL, NULL, 'escaped', 1, 1, 'a3469c14-eef3-48c2-9860-032c53fc1010', 'hold', NULL, NULL, NULL, 1796079468469, 1796079468477, 15000, 1796079468477, 'unknown', NULL, false, 1, 1796079468469, 'hold', 1796079483477, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('b30b6e44-a4c0-1275-c8e4-9caf64bafa5f', '\x58c6f10e869cb642b4a1876e3ebab22f', 'acme', NULL, 1, 'compat-renamed', 'business-identity', 'order=…st', NULL, '1115fba4-16c5-4f1f-aa27-554391528457', '[["order","bc408c84c71b30b657251caacfdf71a1f7cdec7c419f88683d27366fa3a95142"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468482, NULL, NULL, NULL, 'escaped', 1, 1, '22e0e9e8-9488-41a0-855b-856b277d26e3', 'hold', NULL, NULL, NULL, 1796079468482, 1796079468493, 15000, 1796079468493, 'unknown', NULL, false, 1, 1796079468482, 'hold', 1796079483493, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('5b834634-ec7d-aa06-db67-315d8bdecaf6', '\x68adba74ff9851a240ee882602abab6f', 'acme', NULL, 1, 'compat-retyped', 'business-identity', 'order=…st', NULL, '6ada890d-5832-47f4-af18-363d2951b41e', '[["order","bc408c84c71b30b657251caacfdf71a1f7cdec7c419f88683d27366fa3a95142"],["amount","59efcb0f38080782b6627c555bf7c9271610229855076ce4d4362ed5b653fe03"]]', 1796079468504, NULL, NULL, NULL, 'escaped', 1, 1, '41b05e55-6e8e-4647-b56f-6efe58b4fbf7', 'hold', NULL, NULL, NULL, 1796079468504, 1796079468512, 15000, 1796079468512, 'unknown', NULL, false, 1, 1796079468504, 'hold', 1796079483512, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('c014ae23-a761-7d23-b39b-08c9da78dd2f', '\xcb6ce9ec50d4e4135e539a0cd9bf0861', 'acme', NULL, 1, 'compat-sent', 'business-identity', 'order=…ce', NULL, '90f8d3b8-cf8d-41d1-be2d-0ab6b225be12', '[["order","94acd1d2b374d0a8311f7f6a03a7ecff4e297ba93fbdbb39d00fe389cf99ebce"]]', 1796079468513, 1796079468519, NULL, NULL, 'completed', 1, 2, '91987416-912e-4019-9ad4-bd3c0a60b871', 'rerun', NULL, NULL, NULL, 1796079468545, 1796079468558, 15000, 1796079468558, 'performed', NULL, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a322c2277686174223a227477696365227d', 'json/1', NULL, false, 1796079468558, 1798671468558, false, false, 4);
INSERT INTO public.effectual_effects VALUES ('202f6ac5-9cd0-b536-88cb-75348402481d', '\x87ec1caf08bdfad449d28125231c1fe7', 'acme', NULL, 1, 'compat-kept', 'business-identity', 'order=…ased', NULL, '61871586-a2a6-4c6e-99f8-df42492e515d', '[["order","608e5021cae4ea3f71f60f0ab9493c29accbb09028094a7edc6bbe543b6bf1cc"]]', 1796079468565, 1796079468577, NULL, NULL, 'released', 1, 1, '38fe014e-200a-4e68-8529-1e7a84539c04', 'hold', NULL, NULL, NULL, 1796079468565, 1796079468577, 15000, 1796079468577, 'not_performed', NULL, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('8b7857e4-421f-a0be-9dc1-1e3c7f7e59b2', '\x0ae64653ef7ab1bae5f56c9e37ebab5e', 'acme', NULL, 1, 'compat-kept', 'business-identity', 'order=…ped', NULL, 'a7252796-ce93-422c-ab9b-af503d4c74e0', '[["order","c5f0c0001fdb4551d8868798c1c4d7d953bcfa42679a38621c4fc08fed52a8ef"]]', 1796079468584, 1796079468597, NULL, NULL, 'escaped', 1, 1, '10e8061f-182a-470f-8e77-cdb6af581052', 'hold', NULL, NULL, NULL, 1796079468584, 1796079468597, 15000, 1796079468597, 'unknown', NULL, true, 1, 1796079468584, 'hold', 1796079483596, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('5ac0ac35-6605-6171-b74a-23162c42a9d6', '\x4a623248259002b5eb83372a35846206', 'acme', NULL, 1, 'compat-kept', 'business-identity', 'order=…-run', NULL, '37e60ce3-9fce-400b-bfe4-57852ae49514', '[["order","7b6f8a493305570e231d69963eb3b1dae703b718f63900b0c35f379aa8f37d5a"]]', 1796079468606, 1796079468613, NULL, NULL, 'completed', 1, 1, 'd214c63c-d30d-405e-825c-7ad25860dc4d', 'hold', 'acme/0000000000000one', 'ship', NULL, 1796079468606, 1796079468613, 15000, 1796079468613, 'performed', NULL, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a312c2277686174223a22696e2d612d72756e227d', 'json/1', NULL, false, 1796079468613, 1798671468613, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('cd832553-e4b2-608b-aa89-70845941314e', '\x1fc7293fa75ee8bfaa5350a9117b0165', 'acme', NULL, 1, 'compat-accepted', 'business-identity', 'order=…', NULL, '4bae6aaf-e356-4663-af53-e1abf6f5ddd5', '[["order","089ba333ccddec4dcb40a838a54a89407a36b80097d195b73610e6d3de81333c"]]', 1796079468631, NULL, NULL, NULL, 'escaped', 1, 1, 'f743abad-45ac-4f8b-af27-13218d35456a', 'hold', NULL, NULL, NULL, 1796079468631, 1796079468646, 15000, 1796079468646, 'unknown', NULL, false, 1, 1796079468631, 'hold', 1796079483646, NULL, 'job-17', 1796079469639, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 3);
INSERT INTO public.effectual_effects VALUES ('fffa54db-db80-3c0d-9336-01e36b4c402c', '\x7dcab52f646d3e1bbdab2372564d9a5b', 'acme', '\x84a166c74620154565e20000f97f7bab769a57b8d353a4db013ce5dea4a818de', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 1);
INSERT INTO public.effectual_effects VALUES ('84a166c7-4620-1545-65e2-0000f97f7bab', '\x769a57b8d353a4db013ce5dea4a818de', 'acme', NULL, 2, 'compat-ship', 'business-identity', 'order=… line=3', NULL, 'f6958f8f-464c-4cec-ab35-d043e5ed1f5f', '[["order","bdb23515fdd375857d8acf94d851a91ce9daf3acc137ef1b3c2805e25636edb2"],["line","0b510d42e6e8260380d43ca286b825cf63019e41945211a90236e9303faaf4d5"]]', 1796079468660, 1796079468662, NULL, NULL, 'completed', 1, 1, '69afa3c4-800d-437a-bb12-93e728a3893c', 'hold', NULL, NULL, NULL, 1796079468660, 1796079468662, 15000, 1796079468662, 'performed', NULL, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'success', '\x7b226e756d626572223a312c2277686174223a226f2f33227d', 'json/1', NULL, false, 1796079468662, 1798671468662, false, false, 2);
INSERT INTO public.effectual_effects VALUES ('6a878236-6f30-bf50-f59d-5e946f1827fd', '\xf564151c12681226987bc557f13ea51d', 'acme', NULL, 1, 'compat-kept', 'business-identity', 'order=…med', NULL, 'dc5c3249-2a1f-46a3-9a49-1ac02fecf336', '[["order","3dc1c4281570a5e5990715730e80f9aa35116535e8aa9cf397807d39201dfa66"]]', 1796079468663, NULL, NULL, NULL, 'claimed', 1, 1, '3642b985-e8dc-4de2-aadc-66620b7c7024', 'hold', NULL, NULL, NULL, 1796079468663, 1796079528663, 15000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 1);

INSERT INTO public.effectual_schema VALUES (true, 1);

INSERT INTO public.effectual_touches VALUES ('acme/0000000000000two', '5ac0ac35-6605-6171-b74a-23162c42a9d6', 'ship', NULL, 1796079468621);

SELECT pg_catalog.setval('public.effectual_audit_seq_seq', 1, false);

SELECT pg_catalog.setval('public.effectual_evidence_seq_seq', 1, false);

ALTER TABLE ONLY public.effectual_attempts
    ADD CONSTRAINT effectual_attempts_pkey PRIMARY KEY (digest_head, attempt);

ALTER TABLE ONLY public.effectual_audit
    ADD CONSTRAINT effectual_audit_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY public.effectual_effects
    ADD CONSTRAINT effectual_effects_pkey PRIMARY KEY (digest_head);

ALTER TABLE ONLY public.effectual_evidence
    ADD CONSTRAINT effectual_evidence_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY public.effectual_schema
    ADD CONSTRAINT effectual_schema_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY public.effectual_touches
    ADD CONSTRAINT effectual_touches_pkey PRIMARY KEY (run, digest_head);

ALTER TABLE public.effectual_effects
    ADD CONSTRAINT is_an_effect CHECK ((num_nulls((effectual_effects.*)::public.effectual_effect) = 0));

CREATE INDEX effectual_attempts_by_run ON public.effectual_attempts USING btree (run) WHERE (run IS NOT NULL);

CREATE INDEX effectual_audit_by_effect ON public.effectual_audit USING btree (digest_head);

CREATE INDEX effectual_effects_by_alias ON public.effectual_effects USING btree (alias_of) WHERE (alias_of IS NOT NULL);

CREATE INDEX effectual_effects_by_run ON public.effectual_effects USING btree (run) WHERE (run IS NOT NULL);

CREATE INDEX effectual_evidence_by_effect ON public.effectual_evidence USING btree (digest_head);

ALTER TABLE ONLY public.effectual_attempts
    ADD CONSTRAINT effectual_attempts_digest_head_fkey FOREIGN KEY (digest_head) REFERENCES public.effectual_effects(digest_head);

ALTER TABLE ONLY public.effectual_audit
    ADD CONSTRAINT effectual_audit_digest_head_fkey FOREIGN KEY (digest_head) REFERENCES public.effectual_effects(digest_head);

ALTER TABLE ONLY public.effectual_evidence
    ADD CONSTRAINT effectual_evidence_digest_head_fkey FOREIGN KEY (digest_head) REFERENCES public.effectual_effects(digest_head);

ALTER TABLE ONLY public.effectual_touches
    ADD CONSTRAINT effectual_touches_digest_head_fkey FOREIGN KEY (digest_head) REFERENCES public.effectual_effects(digest_head);

