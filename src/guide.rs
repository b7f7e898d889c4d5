//! The guide, with pages on the subjects that the README does not cover.
//!
//! The pages are the Markdown files in `src/guide`.

/// Declares a module for each page, with the page's Markdown file as its documentation. Pages link
/// to each other by reference links, which each file defines at its end as file names. In rustdoc,
/// the links lead to modules: the definitions below precede the file, and the first definition of a
/// reference wins.
macro_rules! pages {
    ($($page:ident)*) => {$(
        #[doc = "[install]: crate::guide::install"]
        #[doc = "[python]: crate::guide::python"]
        #[doc = "[options]: crate::guide::options"]
        #[doc = "[networks]: crate::guide::networks"]
        #[doc = "[explain]: crate::guide::explain"]
        #[doc = "[review]: crate::guide::review"]
        #[doc = "[serve]: crate::guide::serve"]
        #[doc = "[methods]: crate::guide::methods"]
        #[doc = "[training]: crate::guide::training"]
        #[doc = "[the_loop]: crate::guide::the_loop"]
        #[doc = "[formats]: crate::guide::formats"]
        #[doc = "[moves]: crate::guide::moves"]
        #[doc = "[futures]: crate::guide::futures"]
        #[doc = "[worlds]: crate::guide::worlds"]
        #[doc = "[measuring]: crate::guide::measuring"]
        #[doc = "[glossary]: crate::guide::glossary"]
        #[doc = ""]
        #[doc = include_str!(concat!("guide/", stringify!($page), ".md"))]
        pub mod $page {}
    )*};
}

pages! { install python options networks explain review serve methods training the_loop formats moves futures worlds measuring glossary }
