//! `#[derive(Failure)]`: what each variant of an error means for the effect.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Fields, Index, Member, Path, parse_quote};

use crate::errors::Errors;
use crate::option::{Grammar, assigned, list};

const VARIANT: Grammar = Grammar {
    owner: "`#[failure]`",
    names: &["not_performed", "retry", "retry_after", "refused", "unknown", "transparent"],
};
const TYPE: Grammar = Grammar { owner: "`#[effectual]`", names: &["crate"] };

/// The verdicts, of which a variant says one.
const VERDICTS: &[&str] = &["not_performed", "refused", "unknown", "transparent"];

/// What one variant, or the struct, says.
#[derive(Default)]
struct Said {
    verdict: Option<Ident>,
    retry: Option<Ident>,
    retry_after: Option<Member>,
}

/// One arm of the two matches.
struct Arm {
    /// `Self::NoRoute`, or `Self` for a struct.
    path: TokenStream,
    fields: Fields,
    said: Said,
}

pub(crate) fn derive(input: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let krate = crate_path(&input.attrs, &mut errors);
    let arms = arms(&input, &mut errors);
    if let Some(lifetime) = input.generics.lifetimes().next() {
        errors.at(lifetime, "an error that borrows cannot be stored: own its data");
    }
    if errors.is_empty() {
        return implementation(&input, &krate, &arms);
    }
    // Implemented nonetheless where it can be, so that no effect that returns this error reports a second mistake.
    let can_be = !matches!(input.data, Data::Union(_)) && input.generics.lifetimes().next().is_none();
    let stand_in = can_be.then(|| implementation(&input, &krate, &[]));
    let errors = errors.into_tokens();
    quote!(#errors #stand_in)
}

/// The crate's path from `#[effectual(crate = path)]`, or `::effectual`.
fn crate_path(attrs: &[Attribute], errors: &mut Errors) -> Path {
    let mut krate = parse_quote!(::effectual);
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("effectual")) {
        TYPE.read_attribute(attr, errors, |name, input, _| {
            krate = assigned(name, "::path::to::effectual", input)?;
            Ok(())
        });
    }
    krate
}

fn arms(input: &DeriveInput, errors: &mut Errors) -> Vec<Arm> {
    match &input.data {
        Data::Enum(data) => {
            for attr in failure_attributes(&input.attrs) {
                errors.at(
                    attr,
                    "`#[failure]` goes on each variant: they may mean different things for the effect",
                );
            }
            let arm = |variant: &syn::Variant| {
                let name = &variant.ident;
                arm(quote!(Self::#name), &variant.attrs, &variant.fields, errors)
            };
            data.variants.iter().map(arm).collect()
        }
        Data::Struct(data) => vec![arm(quote!(Self), &input.attrs, &data.fields, errors)],
        Data::Union(data) => {
            errors.at(data.union_token, "`Failure` is derived for an enum or a struct, not for a union");
            Vec::new()
        }
    }
}

fn arm(path: TokenStream, attrs: &[Attribute], fields: &Fields, errors: &mut Errors) -> Arm {
    let mut said = Said::default();
    let before = errors.count();
    for (index, attr) in failure_attributes(attrs).enumerate() {
        match index {
            0 => VARIANT.read_attribute(attr, errors, |name, input, _| said.take(name, input)),
            _ => errors.at(attr, "`#[failure]` is given twice; write all of its options in one"),
        }
    }
    if errors.count() == before {
        retry_fits_verdict(&said, errors);
        transparent_has_one_field(&said, fields, errors);
        retry_after_is_a_field(&said, fields, errors);
    }
    for attr in fields.iter().flat_map(|field| failure_attributes(&field.attrs)) {
        errors.at(
            attr,
            "`#[failure]` goes on the variant, not on its field; name the field there: `retry_after = delay`",
        );
    }
    Arm { path, fields: fields.clone(), said }
}

fn failure_attributes(attrs: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("failure"))
}

impl Said {
    fn take(&mut self, name: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        match name.to_string().as_str() {
            "retry" => self.retry = Some(name.clone()),
            "retry_after" => self.retry_after = Some(assigned(name, "field", input)?),
            _ => {
                if let Some(first) = &self.verdict {
                    let message = format!("`{name}` contradicts `{first}`: say one of {}", list(VERDICTS));
                    return Err(syn::Error::new(name.span(), message));
                }
                self.verdict = Some(name.clone());
            }
        }
        Ok(())
    }

    fn is(&self, verdict: &str) -> bool {
        self.verdict.as_ref().is_some_and(|said| said == verdict)
    }
}

fn retry_fits_verdict(said: &Said, errors: &mut Errors) {
    if let Some(retry) = said.retry.as_ref().filter(|_| !said.is("not_performed")) {
        errors.at(
            retry,
            "`retry` belongs to `not_performed`: write `#[failure(not_performed, retry)]`; \
             a refusal is final, and an unknown end is for the recovery class to decide",
        );
    } else if let Some(after) =
        said.retry_after.as_ref().filter(|_| said.retry.is_none() && !said.is("unknown"))
    {
        errors.at(
            after,
            "`retry_after` says when to try again: write `#[failure(not_performed, retry, retry_after = …)]`, \
             or `#[failure(unknown, retry_after = …)]`",
        );
    }
}

fn transparent_has_one_field(said: &Said, fields: &Fields, errors: &mut Errors) {
    if said.is("transparent") && fields.len() != 1 {
        let message = format!(
            "`transparent` takes the verdict of the only field, and there are {} fields: say the verdict here instead",
            fields.len()
        );
        errors.at(&said.verdict, message);
    }
}

fn retry_after_is_a_field(said: &Said, fields: &Fields, errors: &mut Errors) {
    let Some(wanted) = &said.retry_after else { return };
    let members: Vec<_> = fields.members().collect();
    if members.contains(wanted) {
        return;
    }
    let names: Vec<_> = members.iter().map(|member| member.to_token_stream().to_string()).collect();
    let wanted_name = wanted.to_token_stream();
    let message = match names.as_slice() {
        [] => format!("there is no field `{wanted_name}`: `retry_after` names a field that holds the delay"),
        names => format!("there is no field `{wanted_name}`; the fields are {}", list(names)),
    };
    errors.at(wanted, message);
}

fn implementation(input: &DeriveInput, krate: &Path, arms: &[Arm]) -> TokenStream {
    let private = quote!(#krate::__private);
    let name = &input.ident;
    let (generics, arguments, clause) = input.generics.split_for_impl();
    let verdicts = arms.iter().map(|arm| arm.verdict(&private));
    let delays: Vec<_> = arms.iter().filter_map(|arm| arm.retry_after(&private)).collect();
    // A stand-in, or an enum without variants or with variants that say nothing, needs no more than the last arm.
    let retry_after = (!delays.is_empty()).then(|| {
        quote! {
            fn retry_after(&self) -> ::core::option::Option<::core::time::Duration> {
                #[allow(unreachable_patterns)]
                match self {
                    #(#delays)*
                    _ => ::core::option::Option::None,
                }
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl #generics #private::Failure for #name #arguments #clause {
            fn verdict(&self) -> #private::Verdict {
                #[allow(unreachable_patterns)]
                match self {
                    #(#verdicts)*
                    _ => #private::Verdict::Unknown,
                }
            }
            #retry_after
        }
    }
}

impl Arm {
    fn verdict(&self, private: &TokenStream) -> TokenStream {
        let path = &self.path;
        if let Some(arm) = self.delegating(private, "verdict") {
            return arm;
        }
        let retry = self.said.retry.is_some();
        let verdict = match self.said.verdict.as_ref().map(Ident::to_string).as_deref() {
            Some("not_performed") => quote!(NotPerformed { retry: #retry }),
            Some("refused") => quote!(Refused),
            _ => quote!(Unknown),
        };
        quote!(#path { .. } => #private::Verdict::#verdict,)
    }

    fn retry_after(&self, private: &TokenStream) -> Option<TokenStream> {
        if let Some(arm) = self.delegating(private, "retry_after") {
            return Some(arm);
        }
        let path = &self.path;
        let member = self.said.retry_after.as_ref()?;
        let field = self.fields.iter().zip(self.fields.members()).find(|(_, known)| known == member)?.0;
        let delay = quote_spanned!(field.ty.span()=> #private::Delay::delay(*__effect_delay));
        Some(quote!(#path { #member: __effect_delay, .. } => #delay,))
    }

    /// The arm of a transparent variant: asks its field.
    fn delegating(&self, private: &TokenStream, method: &str) -> Option<TokenStream> {
        if !self.said.is("transparent") {
            return None;
        }
        let (path, field) = (&self.path, self.fields.iter().next()?);
        let member = field.ident.clone().map_or(Member::Unnamed(Index::from(0)), Member::Named);
        let method = format_ident!("{method}", span = Span::call_site());
        let asked = quote_spanned!(field.ty.span()=> #private::Failure::#method(__effect_source));
        Some(quote!(#path { #member: __effect_source } => #asked,))
    }
}
