//! The guide: everything that the README leaves out, a page for each subject.
//!
//! The pages are the Markdown files in `src/guide`, and read as well there.

/// Makes a page of a Markdown file. Pages name each other by reference links, whose
/// targets at the end of each file are other files. Of several targets the first
/// counts, so that here they lead to modules.
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
