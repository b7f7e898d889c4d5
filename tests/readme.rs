//! The documents match the program, and their links resolve.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders with documents.
const FOLDERS: [&str; 6] = ["", ".github", "bench", "bench/gallery", "nets", "src/guide"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.replace("\r\n", "\n")
}

#[test]
fn the_signature_matches_the_program() {
    let text = read(&root().join("src/guide/measuring.md"));
    let signature = tessera::eval::bench::SIGNATURE;
    assert!(text.contains(&format!("currently {signature}.")));
}

/// Returns every document of the repository.
fn documents() -> Vec<PathBuf> {
    let entries = FOLDERS
        .iter()
        .flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let documents: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    assert!(documents.len() > FOLDERS.len());
    documents
}

/// Returns the targets of a document's links, both inline and by reference, except web links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let inline = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let references = text.lines().filter_map(|line| {
        line.strip_prefix('[')?
            .split_once("]: ")
            .map(|(_, target)| target)
    });
    inline
        .chain(references)
        .filter(|target| !target.contains("://"))
}

/// Returns a heading's anchor, in the form that GitHub and rustdoc generate.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|&it| it.is_alphanumeric() || " -_".contains(it));
    kept.collect::<String>().replace(' ', "-")
}

#[test]
fn every_link_resolves_to_a_file_and_a_heading() {
    for document in documents() {
        let text = read(&document);
        for link in links(&text) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => document.clone(),
                path => document.parent().unwrap().join(path),
            };
            assert!(
                target.exists(),
                "{document:?} links to {link}: no such file"
            );
            if !heading.is_empty() {
                let target = read(&target);
                let mut headings = target.lines().filter_map(|line| line.strip_prefix('#'));
                let found = headings.any(|line| anchor(line.trim_start_matches('#')) == heading);
                assert!(found, "{document:?} links to {link}: no such heading");
            }
        }
    }
}
