//! What must not compile, and what the compiler then says. One file for each refusal, one directory for each
//! part of the library; `TRYBUILD=overwrite` rewrites the expected texts.

#[test]
fn refusals() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/*/*.rs");
}
