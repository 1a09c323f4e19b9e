//! The implementations, as tokens. Nothing is judged here.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Type};

use super::Derived;
use super::bounds::with_bounds;
use super::model::{Body, Content, Model, Variant};

pub(super) fn implementations(model: &Model, derived: Derived) -> TokenStream {
    let encoding = Encoding::of(model, derived);
    let body = encoding.body(&model.body);
    match derived {
        Derived::Identity => {
            let krate = &model.krate;
            // By way of the identity, so that a field without it is reported for one trait and not for two.
            let same = quote!(<Self as #krate::__private::Identity>::encode(self, __effect_out););
            let identity = encoding.implementation(&encoding.trait_name, &encoding.method, body);
            let fingerprint = format_ident!("Fingerprint");
            let method = format_ident!("encode_fingerprint");
            let comparison = encoding.implementation(&fingerprint, &method, same);
            quote!(#identity #comparison)
        }
        Derived::Fingerprint => encoding.implementation(&encoding.trait_name, &encoding.method, body),
    }
}

/// Implementations that encode nothing, beside the errors that keep them from being compiled.
pub(super) fn placeholders(model: &Model, derived: Derived) -> TokenStream {
    let empty = Model {
        ident: model.ident.clone(),
        generics: model.generics.clone(),
        krate: model.krate.clone(),
        body: Body::Struct(Content::Unit),
    };
    implementations(&empty, derived)
}

/// What is written for one trait.
struct Encoding<'a> {
    model: &'a Model,
    trait_name: Ident,
    method: Ident,
}

impl<'a> Encoding<'a> {
    fn of(model: &'a Model, derived: Derived) -> Self {
        let (trait_name, method) = match derived {
            Derived::Identity => ("Identity", "encode"),
            Derived::Fingerprint => ("Fingerprint", "encode_fingerprint"),
        };
        Self { model, trait_name: format_ident!("{trait_name}"), method: format_ident!("{method}") }
    }

    fn implementation(&self, trait_name: &Ident, method: &Ident, body: TokenStream) -> TokenStream {
        let Model { ident, krate, .. } = self.model;
        let generics = with_bounds(self.model, &self.trait_name);
        let (parameters, arguments, bounds) = generics.split_for_impl();
        quote! {
            #[automatically_derived]
            #[allow(deprecated)]
            impl #parameters #krate::__private::#trait_name for #ident #arguments #bounds {
                fn #method(&self, __effect_out: &mut #krate::__private::Encoder) {
                    #body
                }
            }
        }
    }

    fn body(&self, body: &Body) -> TokenStream {
        match body {
            Body::Struct(content) => {
                let fields: Vec<_> = content.fields().into_iter().map(|field| &field.member).collect();
                let values = fields.iter().map(|member| quote!(&self.#member)).collect();
                self.content(content, values)
            }
            Body::Enum(variants) if variants.is_empty() => quote!(match *self {}),
            Body::Enum(variants) => {
                let arms = variants.iter().map(|variant| self.arm(variant));
                quote!(match self { #(#arms)* })
            }
        }
    }

    fn arm(&self, variant: &Variant) -> TokenStream {
        let Variant { ident, name, content } = variant;
        let fields = content.fields();
        let members = fields.iter().map(|field| &field.member);
        let values: Vec<_> = (0..fields.len()).map(|index| format_ident!("__effect_{index}")).collect();
        let encoded = self.content(content, values.iter().map(|value| quote!(#value)).collect());
        quote! {
            Self::#ident { #(#members: #values),* } => {
                let __effect_variant = __effect_out.open_variant(#name);
                #encoded
                __effect_out.close(__effect_variant);
            }
        }
    }

    /// The encoding of some fields; `values` are references to them, in the order of `Content::fields`.
    fn content(&self, content: &Content, values: Vec<TokenStream>) -> TokenStream {
        let types = content.fields().into_iter().map(|field| &field.ty);
        let encoded: Vec<_> = types.zip(&values).map(|(ty, value)| self.field(ty, value)).collect();
        match content {
            Content::Unit => quote!(__effect_out.unit();),
            Content::Newtype(_) => quote!(#(#encoded)*),
            Content::Tuple(_) => quote! {
                let __effect_tuple = __effect_out.open_tuple();
                #(#encoded)*
                __effect_out.close(__effect_tuple);
            },
            Content::Record(fields) => {
                let names = fields.iter().map(|(name, _)| name);
                quote! {
                    let __effect_record = __effect_out.open_record();
                    #(__effect_out.name(#names); #encoded)*
                    __effect_out.close(__effect_record);
                }
            }
        }
    }

    fn field(&self, ty: &Type, value: &TokenStream) -> TokenStream {
        let Self { model: Model { krate, .. }, trait_name, method } = self;
        // A type without the trait is reported at the field's type; names resolve as in the rest of the output,
        // also where a macro wrote the type.
        let span = Span::call_site().located_at(ty.span());
        quote_spanned!(span=> <#ty as #krate::__private::#trait_name>::#method(#value, __effect_out);)
    }
}
