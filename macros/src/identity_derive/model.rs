//! What a type says about its encoding.

use std::collections::HashSet;

use syn::{Data, DeriveInput, Fields, Generics, Ident, Member, Path, Type};

use super::attributes::{self, Name};
use crate::errors::Errors;

/// A type as the derives see it.
pub(super) struct Model {
    pub(super) ident: Ident,
    pub(super) generics: Generics,
    /// Where the crate is, usually `::effectual`.
    pub(super) krate: Path,
    pub(super) body: Body,
}

pub(super) enum Body {
    Struct(Content),
    Enum(Vec<Variant>),
}

pub(super) struct Variant {
    pub(super) ident: Ident,
    pub(super) name: String,
    pub(super) content: Content,
}

/// The fields of a struct or of a variant, by how they are encoded.
pub(super) enum Content {
    Unit,
    /// One field without a name: encoded as the field itself.
    Newtype(Box<Field>),
    Tuple(Vec<Field>),
    /// Sorted by the bytes of their encoded names.
    Record(Vec<(String, Field)>),
}

pub(super) struct Field {
    pub(super) member: Member,
    pub(super) ty: Type,
}

impl Model {
    pub(super) fn read(input: &DeriveInput, errors: &mut Errors) -> Self {
        let krate = attributes::crate_path(&input.attrs, errors);
        let body = match &input.data {
            Data::Struct(data) => Body::Struct(Content::read(&data.fields, errors)),
            Data::Enum(data) => Body::Enum(read_variants(data, errors)),
            Data::Union(data) => {
                errors.at(
                    data.union_token,
                    "a union does not say which of its fields is set, so it has no encoding; use an enum",
                );
                Body::Struct(Content::Unit)
            }
        };
        Self { ident: input.ident.clone(), generics: input.generics.clone(), krate, body }
    }

    /// Every field of the type, of all variants.
    pub(super) fn fields(&self) -> Vec<&Field> {
        match &self.body {
            Body::Struct(content) => content.fields(),
            Body::Enum(variants) => variants.iter().flat_map(|variant| variant.content.fields()).collect(),
        }
    }
}

impl Content {
    fn read(fields: &Fields, errors: &mut Errors) -> Self {
        match fields {
            Fields::Unit => Self::Unit,
            Fields::Named(named) => Self::Record(read_record(named, errors)),
            Fields::Unnamed(_) => Self::positional(fields, errors),
        }
    }

    fn positional(fields: &Fields, errors: &mut Errors) -> Self {
        let field = |(index, field): (usize, &syn::Field)| {
            attributes::no_name(&field.attrs, errors);
            Field { member: index.into(), ty: field.ty.clone() }
        };
        let mut fields: Vec<Field> = fields.iter().enumerate().map(field).collect();
        match (fields.pop(), fields.is_empty()) {
            (Some(only), true) => Self::Newtype(Box::new(only)),
            (last, _) => {
                fields.extend(last);
                Self::Tuple(fields)
            }
        }
    }

    pub(super) fn fields(&self) -> Vec<&Field> {
        match self {
            Self::Unit => Vec::new(),
            Self::Newtype(field) => vec![field.as_ref()],
            Self::Tuple(fields) => fields.iter().collect(),
            Self::Record(fields) => fields.iter().map(|(_, field)| field).collect(),
        }
    }
}

fn read_record(named: &syn::FieldsNamed, errors: &mut Errors) -> Vec<(String, Field)> {
    let mut names = Names::default();
    let mut fields = Vec::new();
    for field in &named.named {
        let Some(ident) = &field.ident else { continue };
        let name = attributes::encoded_name(&field.attrs, ident, errors);
        names.add(&name, "fields", errors);
        fields.push((name.text, Field { member: ident.clone().into(), ty: field.ty.clone() }));
    }
    fields.sort_by(|(one, _), (two, _)| one.cmp(two));
    fields
}

fn read_variants(data: &syn::DataEnum, errors: &mut Errors) -> Vec<Variant> {
    let mut names = Names::default();
    let mut variants = Vec::new();
    for variant in &data.variants {
        let name = attributes::encoded_name(&variant.attrs, &variant.ident, errors);
        names.add(&name, "variants", errors);
        let content = Content::read(&variant.fields, errors);
        variants.push(Variant { ident: variant.ident.clone(), name: name.text, content });
    }
    variants
}

/// The encoded names of one struct, or of one enum's variants: no two may be equal.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn add(&mut self, name: &Name, what: &str, errors: &mut Errors) {
        if !self.0.insert(name.text.clone()) {
            errors
                .at(&name.token, format!("two {what} are encoded as `{}`; give one another name", name.text));
        }
    }
}
