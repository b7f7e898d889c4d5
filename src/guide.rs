//! The guide: a page on each subject that the README leaves out.
//!
//! The pages are Markdown files in `src/guide` and can also be read there.

/// Makes a module page from a Markdown file. Pages link to each other with reference links, whose
/// targets, at the end of each file, are other files. The first definition of a target wins, so in
/// rustdoc the links lead to modules.
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
