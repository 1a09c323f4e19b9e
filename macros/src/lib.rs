//! The attribute and the derives of `effectual`.
