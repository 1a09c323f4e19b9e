//! Rules on the versions of the key schema.

use crate::args::Args;
use crate::errors::Errors;
use crate::item::{Item, Param};

/// `since` and `until` name versions that there are, and every version has a key.
pub(super) fn check(args: &Args, item: &Item, errors: &mut Errors) {
    let version = args.version.unwrap_or(1);
    let keys: Vec<_> = item.params.iter().filter(|param| !param.key.is_empty()).collect();
    let before = errors.count();
    for param in &keys {
        names_a_version(param, version, errors);
    }
    let changed = keys.iter().find_map(|param| param.key_since.as_ref().or(param.key_until.as_ref()));
    let Some((option, _)) = changed.filter(|_| errors.count() == before) else { return };
    if version > VERSIONS_MAX {
        let message = format!(
            "every earlier version's identity is looked for with each first claim: with `since` or `until`, `version` is at \
             most {VERSIONS_MAX}"
        );
        return errors.at(option, message);
    }
    let has_key = |version: &u32| keys.iter().any(|param| is_in(param, *version));
    if let Some(missing) = (1..=version).find(|version| !has_key(version)) {
        let message = format!(
            "version {missing} of the key schema has no key: leave at least one argument's `#[key]` in it, without `since` \
             and `until`"
        );
        errors.at(option, message);
    }
}

/// How many versions a key schema with `since` or `until` can have.
const VERSIONS_MAX: u32 = 64;

fn is_in(param: &Param, version: u32) -> bool {
    param.key_since.as_ref().is_none_or(|(_, since)| version >= *since)
        && param.key_until.as_ref().is_none_or(|(_, until)| version < *until)
}

fn names_a_version(param: &Param, version: u32, errors: &mut Errors) {
    for (option, number) in param.key_since.iter().chain(&param.key_until) {
        if !(2..=version).contains(number) {
            errors.at(
                option,
                format!(
                    "`{option}` names the version of the key schema that changed it: from 2 to the effect's `version`, \
                     which is {version}; raise it with `version = {}`",
                    (*number).max(2)
                ),
            );
            return;
        }
    }
    if let (Some((_, since)), Some((until, end))) = (&param.key_since, &param.key_until)
        && end <= since
    {
        errors.at(until, format!("a key that is there since version {since} can end at a later one only"));
    }
}
