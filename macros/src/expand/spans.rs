//! Where tokens are said to stand, so that a mistake is reported at what the user wrote.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;

/// The closure's context, located there; everywhere the same variable, also where a macro wrote the place.
pub(super) fn body_context(place: &impl Spanned) -> Ident {
    Ident::new("__effect_cx", own(place))
}

/// That location, with the expansion's own names.
pub(super) fn own(place: &impl Spanned) -> Span {
    Span::call_site().located_at(place.span())
}

/// The argument's variable, located at its type: a bound that its type does not meet is reported there.
pub(super) fn at(ident: &Ident, place: &impl Spanned) -> Ident {
    let mut located = ident.clone();
    located.set_span(ident.span().located_at(place.span()));
    located
}

/// A path of the crate as if it were written there: tokens of two origins have no span in common but the whole attribute's.
pub(super) fn located(path: &TokenStream, place: &impl Spanned) -> TokenStream {
    relocated(path, place.span())
}

pub(super) fn relocated(path: &TokenStream, span: Span) -> TokenStream {
    let relocate = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    path.clone().into_iter().map(relocate).collect()
}
