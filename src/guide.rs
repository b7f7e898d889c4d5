//! The guide: everything that the README leaves out, a page for each subject.
//!
//! | page | what it covers |
//! |---|---|
//! | [`install`] | set-up, platforms, chess programs |
//! | [`options`] | every UCI option |
//! | [`networks`] | networks of other programs, in and out |
//! | [`methods`] | how the engine and the trainer work, and what each method was measured to gain |
//! | [`training`] | data, configuration, running, many devices |
//! | [`formats`] | network files, shards, games with scores, chunks, runs |
//! | [`measuring`] | strength, speed and training, and the match kit |
//! | [`glossary`] | the words of the field as Tessera uses them |
//!
//! The pages are the Markdown files in `src/guide`, and read as well there.

/// Makes a page of a Markdown file. Pages name each other by reference links, whose
/// targets at the end of each file are other files. Of several targets the first
/// counts, so that here they lead to modules.
macro_rules! pages {
    ($($page:ident)*) => {$(
        #[doc = "[install]: crate::guide::install"]
        #[doc = "[options]: crate::guide::options"]
        #[doc = "[networks]: crate::guide::networks"]
        #[doc = "[methods]: crate::guide::methods"]
        #[doc = "[training]: crate::guide::training"]
        #[doc = "[formats]: crate::guide::formats"]
        #[doc = "[measuring]: crate::guide::measuring"]
        #[doc = "[glossary]: crate::guide::glossary"]
        #[doc = ""]
        #[doc = include_str!(concat!("guide/", stringify!($page), ".md"))]
        pub mod $page {}
    )*};
}

pages! { install options networks methods training formats measuring glossary }
