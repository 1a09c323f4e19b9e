-- Effects without an outcome, by age. An effect is in one of the two at the most: those that only a caller or an
-- operator moves on are not looked at again and again by who recovers the others. No renewal changes either.
CREATE INDEX effectual_effects_recoverable ON effectual_effects (created_at, digest)
    WHERE CASE state
        WHEN 'claimed' THEN true
        WHEN 'escaped' THEN accepted_handle IS NOT NULL OR doubt_class <> 'hold'
        WHEN 'released' THEN accepted_handle IS NOT NULL OR input IS NOT NULL
        ELSE false END;

CREATE INDEX effectual_effects_waiting ON effectual_effects (created_at, digest)
    WHERE CASE state
        WHEN 'escaped' THEN accepted_handle IS NULL AND doubt_class = 'hold'
        WHEN 'released' THEN accepted_handle IS NULL AND input IS NULL
        ELSE false END;
