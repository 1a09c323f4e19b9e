-- What is past its retention is found without reading what is not. The first index gets an entry when an effect is settled,
-- at its end, because retentions end in the order in which they begin; the second one only when an effect is forgotten.
CREATE INDEX effectual_effects_by_retention ON effectual_effects (retain_until)
    WHERE outcome_kind IS NOT NULL AND absent_reason IS DISTINCT FROM 'expired';
CREATE INDEX effectual_effects_tombstones ON effectual_effects (retain_until) WHERE absent_reason = 'expired';

-- Removing an effect removes its touches, and asks whether there are any.
CREATE INDEX effectual_touches_by_effect ON effectual_touches (digest_head);
