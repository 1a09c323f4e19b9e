//! Canonical JSON of anything that serialises: no white space, the entries of maps and structs sorted by the
//! bytes of their written names.
//!
//! Written by hand because the usual serialiser turns NaN into `null`, keeps a hash map's order, and changes
//! its mind about 128-bit integers with features that any other crate of the build may switch on.

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Serializer};

mod compound;

use compound::{Entries, Items};

/// Why a value has no canonical JSON. Never holds anything of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused(pub(super) &'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        // The message is the type's own and may quote the value.
        Self("its `Serialize` failed")
    }
}

pub(super) fn canonical(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, Refused> {
    let mut out = Vec::with_capacity(128);
    value.serialize(&mut Canonical { out: &mut out })?;
    Ok(out)
}

/// Writes one value to the end of `out`.
struct Canonical<'a> {
    out: &'a mut Vec<u8>,
}

impl Canonical<'_> {
    fn raw(&mut self, text: &str) -> Result<(), Refused> {
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// A scalar, in the spelling that `serde_json` gives it.
    fn scalar(&mut self, value: impl Serialize) -> Result<(), Refused> {
        serde_json::to_writer(&mut *self.out, &value).map_err(ser::Error::custom)
    }

    /// `{"variant":`, for what carries the content of an enum's variant.
    fn variant(&mut self, name: &str) -> Result<(), Refused> {
        self.raw("{")?;
        self.scalar(name)?;
        self.raw(":")
    }
}

const NOT_FINITE: Refused = Refused("it holds a float that is NaN or infinite");

macro_rules! integers {
    ($($method:ident $type:ty)+) => {$(
        fn $method(self, value: $type) -> Result<(), Refused> {
            self.raw(&value.to_string())
        }
    )+};
}

impl<'a, 'out> Serializer for &'a mut Canonical<'out> {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Items<'a>;
    type SerializeMap = Entries<'a>;
    type SerializeStruct = Entries<'a>;
    type SerializeStructVariant = Entries<'a>;

    integers! {
        serialize_i8 i8 serialize_i16 i16 serialize_i32 i32 serialize_i64 i64 serialize_i128 i128
        serialize_u8 u8 serialize_u16 u16 serialize_u32 u32 serialize_u64 u64 serialize_u128 u128
    }

    fn serialize_bool(self, value: bool) -> Result<(), Refused> {
        self.raw(if value { "true" } else { "false" })
    }

    fn serialize_f32(self, value: f32) -> Result<(), Refused> {
        if value.is_finite() { self.scalar(value) } else { Err(NOT_FINITE) }
    }

    fn serialize_f64(self, value: f64) -> Result<(), Refused> {
        if value.is_finite() { self.scalar(value) } else { Err(NOT_FINITE) }
    }

    fn serialize_char(self, value: char) -> Result<(), Refused> {
        self.scalar(value)
    }

    fn serialize_str(self, value: &str) -> Result<(), Refused> {
        self.scalar(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Refused> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Refused> {
        self.raw("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Refused> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Refused> {
        self.raw("null")
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Refused> {
        self.raw("null")
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Refused> {
        self.scalar(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Refused> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Refused> {
        self.variant(variant)?;
        value.serialize(&mut *self)?;
        self.raw("}")
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Items<'a>, Refused> {
        Ok(Items::open(self.out, "]"))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Items<'a>, Refused> {
        Ok(Items::open(self.out, "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'a>, Refused> {
        Ok(Items::open(self.out, "]"))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Items<'a>, Refused> {
        self.variant(variant)?;
        Ok(Items::open(self.out, "]}"))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Entries<'a>, Refused> {
        Ok(Entries::open(self.out, "}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries<'a>, Refused> {
        Ok(Entries::open(self.out, "}"))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Entries<'a>, Refused> {
        self.variant(variant)?;
        Ok(Entries::open(self.out, "}}"))
    }
}

#[cfg(test)]
mod tests;
