//! The safety rules that the mutation table switches off, one at a time, in a test build of its own: a rule that no test
//! misses is a gap.

#[cfg(all(effectual_mutations, not(test)))]
compile_error!("`effectual_mutations` is for test builds only: see tests/mutations");

/// Whether a safety rule is in force: `true` in every build but that of the mutation table.
macro_rules! rule {
    ($rule:ident) => {{
        #[cfg(effectual_mutations)]
        let in_force = $crate::rules::in_force(stringify!($rule));
        #[cfg(not(effectual_mutations))]
        let in_force = true;
        in_force
    }};
}

/// Whether this run has the rule switched on.
#[cfg(effectual_mutations)]
pub(crate) fn in_force(rule: &str) -> bool {
    static OFF: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    OFF.get_or_init(|| std::env::var("EFFECTUAL_RULE_OFF").ok()).as_deref() != Some(rule)
}
