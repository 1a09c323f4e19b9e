//! The house's rules, held against every file. A rule that is broken for a reason has the place and the reason here.

#[path = "tidy/clocks.rs"]
mod clocks;
#[path = "tidy/files.rs"]
mod files;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/words.rs"]
mod words;
