//! The profiles that come with the library.

use std::sync::LazyLock;

use super::profile::{Profile, ProfileError};

/// One file a provider, so that a changed fact is a change of one file.
const FILES: &[&str] = &[
    include_str!("profiles/adyen.json"),
    include_str!("profiles/anthropic.json"),
    include_str!("profiles/aws-dynamodb.json"),
    include_str!("profiles/aws-ec2.json"),
    include_str!("profiles/aws-ecs.json"),
    include_str!("profiles/aws-ses.json"),
    include_str!("profiles/aws-sns-fifo.json"),
    include_str!("profiles/aws-sqs-fifo.json"),
    include_str!("profiles/azure.json"),
    include_str!("profiles/checkout.json"),
    include_str!("profiles/github.json"),
    include_str!("profiles/google-cloud.json"),
    include_str!("profiles/mailgun.json"),
    include_str!("profiles/openai.json"),
    include_str!("profiles/paypal.json"),
    include_str!("profiles/postmark.json"),
    include_str!("profiles/resend.json"),
    include_str!("profiles/sendgrid.json"),
    include_str!("profiles/shopify.json"),
    include_str!("profiles/slack.json"),
    include_str!("profiles/square.json"),
    include_str!("profiles/stripe.json"),
    include_str!("profiles/stripe-v2.json"),
    include_str!("profiles/twilio.json"),
    include_str!("profiles/wise.json"),
];

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let read = |text: &&str| Profile::from_json(text).expect("a test reads every bundled profile");
    FILES.iter().map(read).collect()
});

impl Profile {
    /// The profile that comes with the library for a provider, such as `stripe`. Change what is not so any more with the
    /// `with_…` methods.
    #[must_use]
    pub fn bundled(name: &str) -> Option<Self> {
        Self::bundled_all().iter().find(|profile| profile.name == name).cloned()
    }

    /// Every profile that comes with the library, by name.
    #[must_use]
    pub fn bundled_all() -> &'static [Self] {
        &PROFILES
    }

    /// Reads a profile from JSON, in which the fields have the names that they have here, and checks it.
    ///
    /// # Errors
    /// [`ProfileError`] where a field is missing, unknown or of the wrong shape, or where the profile contradicts itself.
    pub fn from_json(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = serde_json::from_str(text).map_err(|error| ProfileError {
            name: "?".to_owned(),
            rule: format!("it cannot be read: {error}"),
        })?;
        profile.check()?;
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        descriptor::RecoveryClass,
        identity::{EffectId, Tenant},
        provider::{KeyForm, KeyPlace},
    };

    #[test]
    fn every_bundled_profile_holds_together() {
        for (profile, text) in Profile::bundled_all().iter().zip(FILES) {
            assert_eq!(profile.check(), Ok(()));
            assert_eq!(profile.as_of, "2026-11-30", "{}", profile.name);
            assert_eq!(Profile::bundled(&profile.name).as_ref(), Some(profile));
            assert!(text.ends_with("}\n"), "{}", profile.name);
            if profile.key_place == KeyPlace::Nowhere {
                assert_eq!(profile.on_unknown, RecoveryClass::Hold, "{}", profile.name);
            }
        }
        let names: Vec<_> = Profile::bundled_all().iter().map(|profile| profile.name.as_str()).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?} are sorted and differ");
    }

    #[test]
    fn f55_every_key_form_makes_keys_that_fit() {
        let effect = EffectId::new(Tenant::parse("acme").expect("a valid tenant"), [7; 32]);
        for profile in Profile::bundled_all() {
            let key = profile.key_form.derive(&effect, None);
            assert!(key.len() <= profile.key_len_max && key.is_ascii(), "{}", profile.name);
        }
    }

    #[test]
    fn one_fact_is_overridden_and_the_rest_stays() {
        let shipped = Profile::bundled("wise").expect("bundled");
        let changed = shipped.clone().with_window(std::time::Duration::from_secs(60));
        assert_eq!(Profile { window_s: None, ..changed.clone() }, shipped);
        assert_eq!(changed.with_on_unknown(RecoveryClass::Resend).check(), Ok(()));
        let rule = shipped.with_key_form(KeyForm::Hex64, 36).check().map_err(|error| error.to_string());
        assert_eq!(
            rule,
            Err("the profile `wise` is wrong: its key form needs 64 characters and the provider takes 36"
                .into())
        );
    }

    #[test]
    fn a_wrong_profile_says_what_is_wrong() {
        let stripe = include_str!("profiles/stripe.json");
        for (from, to, said) in [
            ("window_s", "windows_s", "unknown field `windows_s`"),
            ("86400", "null", "`resend` needs a documented window"),
            ("255", "35", "needs 36 characters and the provider takes 35"),
            ("\"status\": 429, \"means\"", "\"means\"", "needs a status, a code or a header"),
            ("\"/error/code\"", "\"error/code\"", "starts with `/`"),
            ("[\"/error/code\", \"/error/type\"]", "[]", "`error_code_at` does not say"),
            ("{ \"header\": \"Idempotency-Key\" }", "\"nowhere\"", "needs a place for the key"),
            ("\"Idempotency-Key\"", "\"\"", "needs a name"),
        ] {
            let wrong = stripe.replacen(from, to, 1);
            assert_ne!(wrong, stripe, "{from}");
            let error = Profile::from_json(&wrong).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
