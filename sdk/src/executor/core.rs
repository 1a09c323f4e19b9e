//! What all clones of an executor share.

pub(crate) struct Core {}
