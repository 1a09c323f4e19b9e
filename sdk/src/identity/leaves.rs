//! The types that encode without asking another.

use std::marker::PhantomData;
use std::num::NonZero;
use std::time::Duration;

use uuid::Uuid;

use super::canonical::{Encoder, Tag};
use super::effect_id::EffectId;
use super::ids::{InvocationId, NodeId, RunId, Tenant};
use super::traits::{Fingerprint, Identity};

/// Both traits, with one encoding.
macro_rules! identity {
    ($(impl[$($generic:tt)*] $type:ty: |$value:ident, $out:ident| $encode:expr;)+) => {$(
        impl<$($generic)*> Identity for $type {
            fn encode(&self, $out: &mut Encoder) {
                let $value = self;
                $encode;
            }
        }

        impl<$($generic)*> Fingerprint for $type {
            fn encode_fingerprint(&self, out: &mut Encoder) {
                Identity::encode(self, out);
            }
        }
    )+};
}

/// Only [`Fingerprint`], for what may not identify an effect.
macro_rules! fingerprint {
    ($($type:ty: |$value:ident, $out:ident| $encode:expr;)+) => {$(
        impl Fingerprint for $type {
            fn encode_fingerprint(&self, $out: &mut Encoder) {
                let $value = self;
                $encode;
            }
        }
    )+};
}

/// Integers enter by their declared type, so that a change of the type is seen as what it is.
macro_rules! integers {
    ($($type:ident $tag:ident)+) => {$(
        identity! {
            impl[] $type: |value, out| out.value(Tag::$tag, &value.to_be_bytes());
            impl[] NonZero<$type>: |value, out| Identity::encode(&value.get(), out);
        }
    )+};
}

integers! { u16 U16 u32 U32 u64 U64 u128 U128 i8 I8 i16 I16 i32 I32 i64 I64 i128 I128 }

identity! {
    // Eight bytes on every machine, so that a 32-bit process and a 64-bit one mean the same effect.
    impl[] usize: |value, out| out.value(Tag::Usize, &(*value as u64).to_be_bytes());
    impl[] isize: |value, out| out.value(Tag::Isize, &(*value as i64).to_be_bytes());
    impl[] NonZero<u8>: |value, out| Identity::encode(&value.get(), out);
    impl[] NonZero<usize>: |value, out| Identity::encode(&value.get(), out);
    impl[] NonZero<isize>: |value, out| Identity::encode(&value.get(), out);
    impl[] bool: |value, out| out.value(Tag::Bool, &[u8::from(*value)]);
    impl[] char: |value, out| out.value(Tag::Char, &u32::from(*value).to_be_bytes());
    impl[] (): |_value, out| out.unit();
    impl[T: ?Sized] PhantomData<T>: |_value, out| out.unit();
    impl[] str: |value, out| out.value(Tag::Text, value.as_bytes());
    impl[] String: |value, out| Identity::encode(value.as_str(), out);
    impl[] Uuid: |value, out| out.value(Tag::Uuid, value.as_bytes());
    impl[] Tenant: |value, out| Identity::encode(value.as_str(), out);
}

fingerprint! {
    f32: |value, out| out.value(Tag::F32, &canonical_f32(*value).to_be_bytes());
    f64: |value, out| out.value(Tag::F64, &canonical_f64(*value).to_be_bytes());
    Duration: |value, out| {
        let duration = out.open(Tag::Duration);
        out.append(&value.as_secs().to_be_bytes());
        out.append(&value.subsec_nanos().to_be_bytes());
        out.close(duration);
    };
    RunId: |value, out| Identity::encode(value.as_str(), out);
    NodeId: |value, out| Identity::encode(value.as_str(), out);
    InvocationId: |value, out| Identity::encode(value.as_str(), out);
    EffectId: |value, out| Identity::encode(&value.to_string(), out);
}

impl Identity for u8 {
    fn encode(&self, out: &mut Encoder) {
        out.value(Tag::U8, &[*self]);
    }

    fn encode_sequence(items: &[Self], out: &mut Encoder) {
        out.value(Tag::Bytes, items);
    }
}

impl Fingerprint for u8 {
    fn encode_fingerprint(&self, out: &mut Encoder) {
        self.encode(out);
    }

    fn encode_fingerprint_sequence(items: &[Self], out: &mut Encoder) {
        Self::encode_sequence(items, out);
    }
}

/// NaN has many bit patterns, and which one a computation gives differs between machines: all are one value.
fn canonical_f64(value: f64) -> u64 {
    if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() }
}

fn canonical_f32(value: f32) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }
}
