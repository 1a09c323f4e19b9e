//! Which bounds a generic type's implementation needs.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::quote;
use syn::visit::{self, Visit};
use syn::{Generics, Ident, Path, TypePath, WherePredicate, parse_quote};

use super::model::Model;

/// The type's generics, with the trait demanded of every type parameter that a field holds, and of every
/// associated type of one. Bounds on the fields' own types would make recursive types a cycle.
pub(super) fn with_bounds(model: &Model, trait_name: &Ident) -> Generics {
    let parameters: HashSet<Ident> = model.generics.type_params().map(|p| p.ident.clone()).collect();
    let mut held = Held { parameters, direct: HashSet::new(), associated: Vec::new() };
    for field in model.fields() {
        held.visit_type(&field.ty);
    }
    let krate = &model.krate;
    let mut generics = model.generics.clone();
    let bound = |ty: TokenStream| -> WherePredicate { parse_quote!(#ty: #krate::__private::#trait_name) };
    let direct = model.generics.type_params().map(|p| &p.ident).filter(|p| held.direct.contains(p));
    let bounds: Vec<_> = direct
        .map(|parameter| bound(quote!(#parameter)))
        .chain(held.associated.iter().map(|ty| bound(quote!(#ty))))
        .collect();
    if !bounds.is_empty() {
        generics.make_where_clause().predicates.extend(bounds);
    }
    generics
}

struct Held {
    parameters: HashSet<Ident>,
    direct: HashSet<Ident>,
    associated: Vec<TypePath>,
}

impl<'ast> Visit<'ast> for Held {
    fn visit_type_path(&mut self, ty: &'ast TypePath) {
        let first = ty.path.segments.first().map(|segment| &segment.ident);
        let of_parameter = ty.qself.is_none() && first.is_some_and(|ident| self.parameters.contains(ident));
        // `T::Item` and `<… as Trait>::Item` are other types than `T`, and what is held is one of them.
        if of_parameter && ty.path.segments.len() > 1 || ty.qself.is_some() && !self.parameters.is_empty() {
            self.associated.push(ty.clone());
        } else {
            visit::visit_type_path(self, ty);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        // It holds no value of its parameter.
        if path.segments.last().is_some_and(|segment| segment.ident == "PhantomData") {
            return;
        }
        if let Some(ident) = path.get_ident().filter(|ident| self.parameters.contains(ident)) {
            self.direct.insert(ident.clone());
        }
        visit::visit_path(self, path);
    }
}
