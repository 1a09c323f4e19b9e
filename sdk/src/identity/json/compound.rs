//! Arrays and objects.

use serde::Serialize;
use serde::ser;

use super::{Canonical, Refused, canonical};

/// An array being written.
pub(super) struct Items<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
    close: &'static str,
}

impl<'a> Items<'a> {
    pub(super) fn open(out: &'a mut Vec<u8>, close: &'static str) -> Self {
        out.push(b'[');
        Self { out, first: true, close }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        value.serialize(&mut Canonical { out: self.out })
    }

    fn close(self) -> Result<(), Refused> {
        self.out.extend_from_slice(self.close.as_bytes());
        Ok(())
    }
}

/// An object being written: its entries are kept until all are there to be sorted.
pub(super) struct Entries<'a> {
    out: &'a mut Vec<u8>,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    key: Vec<u8>,
    close: &'static str,
}

impl<'a> Entries<'a> {
    pub(super) fn open(out: &'a mut Vec<u8>, close: &'static str) -> Self {
        Self { out, entries: Vec::new(), key: Vec::new(), close }
    }

    fn entry<T: Serialize + ?Sized>(&mut self, name: Vec<u8>, value: &T) -> Result<(), Refused> {
        self.entries.push((name, canonical(value)?));
        Ok(())
    }

    fn close(mut self) -> Result<(), Refused> {
        self.entries.sort();
        let mut before = b'{';
        for (name, value) in &self.entries {
            self.out.push(before);
            self.out.extend_from_slice(name);
            self.out.push(b':');
            self.out.extend_from_slice(value);
            before = b',';
        }
        if self.entries.is_empty() {
            self.out.push(before);
        }
        self.out.extend_from_slice(self.close.as_bytes());
        Ok(())
    }
}

/// The name of a map's entry: text as it is; numbers and booleans in quotes.
fn name_of<T: Serialize + ?Sized>(key: &T) -> Result<Vec<u8>, Refused> {
    let mut name = canonical(key)?;
    match name.first() {
        Some(b'"') => {}
        Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
            name.insert(0, b'"');
            name.push(b'"');
        }
        _ => return Err(Refused("a map in it has keys that are neither text, numbers nor booleans")),
    }
    Ok(name)
}

macro_rules! items {
    ($($trait:ident $method:ident)+) => {$(
        impl ser::$trait for Items<'_> {
            type Ok = ();
            type Error = Refused;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
                self.item(value)
            }

            fn end(self) -> Result<(), Refused> {
                self.close()
            }
        }
    )+};
}

items! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

macro_rules! entries {
    ($($trait:ident)+) => {$(
        impl ser::$trait for Entries<'_> {
            type Ok = ();
            type Error = Refused;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Refused> {
                self.entry(canonical(name)?, value)
            }

            fn end(self) -> Result<(), Refused> {
                self.close()
            }
        }
    )+};
}

entries! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refused> {
        self.key = name_of(key)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        let name = std::mem::take(&mut self.key);
        self.entry(name, value)
    }

    fn end(self) -> Result<(), Refused> {
        self.close()
    }
}
