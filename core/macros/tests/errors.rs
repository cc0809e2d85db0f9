//! The compiler's messages about programs that use the attributes wrongly: each names what is wrong, where, and
//! what to do.

#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/errors/*.rs");
}
