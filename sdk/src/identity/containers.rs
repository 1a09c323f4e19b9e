//! The types that encode by what they hold, once for each of the two traits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::canonical::{Encoder, Tag};
use super::traits::{Fingerprint, Identity};

macro_rules! containers {
    ($trait:ident, $encode:ident, $sequence:ident) => {
        containers!(@pointer $trait $encode: [T: ?Sized] &T, [T: ?Sized] &mut T, [T: ?Sized] Box<T>, [T: ?Sized] Arc<T>);
        containers!(@sequence $trait $encode $sequence: [] [T], [] Vec<T>, [, const N: usize] [T; N]);
        containers!(@tuple $trait $encode: A 0);
        containers!(@tuple $trait $encode: A 0, B 1);
        containers!(@tuple $trait $encode: A 0, B 1, C 2);
        containers!(@tuple $trait $encode: A 0, B 1, C 2, D 3);
        containers!(@tuple $trait $encode: A 0, B 1, C 2, D 3, E 4);
        containers!(@tuple $trait $encode: A 0, B 1, C 2, D 3, E 4, F 5);
        containers!(@tuple $trait $encode: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
        containers!(@tuple $trait $encode: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

        impl<T: $trait + ToOwned + ?Sized> $trait for Cow<'_, T> {
            fn $encode(&self, out: &mut Encoder) {
                T::$encode(self, out);
            }
        }

        impl<T: $trait> $trait for Option<T> {
            fn $encode(&self, out: &mut Encoder) {
                match self {
                    None => out.value(Tag::None, &[]),
                    Some(value) => {
                        let some = out.open(Tag::Some);
                        value.$encode(out);
                        out.close(some);
                    }
                }
            }
        }

        // Sorted by encoded bytes: the order of `Ord` is the type's own, and may change between two releases.
        impl<K: $trait, V: $trait> $trait for BTreeMap<K, V> {
            fn $encode(&self, out: &mut Encoder) {
                let map = out.open(Tag::Map);
                let mut ends = Vec::with_capacity(self.len());
                for (key, value) in self {
                    key.$encode(out);
                    value.$encode(out);
                    ends.push(out.position());
                }
                out.close_sorted(map, &ends);
            }
        }

        impl<T: $trait> $trait for BTreeSet<T> {
            fn $encode(&self, out: &mut Encoder) {
                let set = out.open(Tag::Set);
                let mut ends = Vec::with_capacity(self.len());
                for item in self {
                    item.$encode(out);
                    ends.push(out.position());
                }
                out.close_sorted(set, &ends);
            }
        }
    };
    (@pointer $trait:ident $encode:ident: $([T: ?Sized] $type:ty),+) => {$(
        impl<T: $trait + ?Sized> $trait for $type {
            fn $encode(&self, out: &mut Encoder) {
                T::$encode(self, out);
            }
        }
    )+};
    (@sequence $trait:ident $encode:ident $sequence:ident: $([$($generic:tt)*] $type:ty),+) => {$(
        impl<T: $trait $($generic)*> $trait for $type {
            fn $encode(&self, out: &mut Encoder) {
                T::$sequence(self, out);
            }
        }
    )+};
    (@tuple $trait:ident $encode:ident: $($name:ident $index:tt),+) => {
        impl<$($name: $trait),+> $trait for ($($name,)+) {
            fn $encode(&self, out: &mut Encoder) {
                let tuple = out.open_tuple();
                $(self.$index.$encode(out);)+
                out.close(tuple);
            }
        }
    };
}

containers!(Identity, encode, encode_sequence);
containers!(Fingerprint, encode_fingerprint, encode_fingerprint_sequence);
