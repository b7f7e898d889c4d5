//! The map in src/lib.rs holds: a module uses only those above it.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules in the order of the table, the ground floor first.
fn map(lib: &str) -> Vec<&str> {
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    let modules = rows.filter_map(|row| row.split_once("`] |"));
    modules.map(|(module, _)| module).collect()
}

/// The Rust files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}

/// The modules that code names as `crate::module` or in `crate::{module::…, …}`.
fn used(code: &str) -> Vec<String> {
    let name = |text: &str| {
        let letters = text.trim_start().chars();
        letters
            .take_while(|&letter| letter.is_alphanumeric() || letter == '_')
            .collect()
    };
    let mut names = Vec::new();
    for path in code.split("crate::").skip(1) {
        let Some(group) = path.strip_prefix('{') else {
            names.push(name(path));
            continue;
        };
        let mut depth = 0;
        let mut start = 0;
        for (at, letter) in group.char_indices() {
            match letter {
                ',' | '}' if depth == 0 => {
                    names.push(name(&group[start..at]));
                    start = at + 1;
                }
                _ => {}
            }
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    names
}

#[test]
fn every_module_uses_only_those_above_it_in_the_map() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(src.join("lib.rs")).unwrap();
    let map = map(&lib);
    for line in lib.lines() {
        if let Some(module) = line.strip_prefix("pub mod ") {
            let module = module.trim_end_matches(';');
            assert!(module == "guide" || map.contains(&module), "{module}");
        }
    }
    let floor = |module: &str| map.iter().position(|&other| other == module);
    let mut count = 0;
    for file in files(&src) {
        let inside = file.strip_prefix(&src).unwrap().with_extension("");
        let module = inside.iter().next().unwrap().to_str().unwrap();
        if ["bin", "cli", "lib", "main"].contains(&module) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.lines().map(|line| line.split("//").next().unwrap());
        for other in used(&code.collect::<Vec<_>>().join("\n")) {
            // What is not in the map serves all of it, and uses nothing of it.
            let is_above = match (floor(&other), floor(module)) {
                (Some(other), own) => own.is_some_and(|own| other <= own),
                (None, _) => true,
            };
            assert!(is_above, "{module} uses {other}, in {}", file.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

/// They would never run: Cargo.toml says that the programs have none.
#[test]
fn programs_have_no_unit_tests() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut programs = files(&src.join("bin"));
    programs.extend(files(&src.join("cli")));
    programs.push(src.join("main.rs"));
    assert!(programs.len() > 30, "{}", programs.len());
    for file in programs {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("#[cfg(test)]"), "{}", file.display());
    }
}

/// The parts of the search in the order of their table, those of a row alike.
fn parts_of_the_search(search: &str) -> Vec<Vec<&str>> {
    let rows = search
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"));
    let names = rows.filter_map(|row| row.split_once(" |"));
    names
        .map(|(names, _)| names.split(',').map(|name| name.trim_matches([' ', '`'])))
        .map(Iterator::collect)
        .collect()
}

#[test]
fn every_part_of_the_search_uses_only_those_above_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let search = fs::read_to_string(src.join("search.rs")).unwrap();
    let parts = parts_of_the_search(&search);
    let floor = |part: &str| parts.iter().position(|row| row.contains(&part));
    for line in search.lines() {
        if let Some(part) = line.strip_prefix("mod ") {
            let part = part.trim_end_matches(';');
            let is_test = ["dream", "imagining", "reference"].contains(&part);
            assert!(is_test || floor(part).is_some(), "{part}");
        }
    }
    let folder = src.join("search");
    let mut count = 0;
    for file in files(&folder) {
        let inside = file.strip_prefix(&folder).unwrap().with_extension("");
        let part = inside.iter().next().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let code: Vec<_> = code
            .lines()
            .map(|l| l.split("//").next().unwrap())
            .collect();
        let mut code = code.join("\n").replace("crate::search::", "part::");
        if inside.iter().count() == 1 {
            code = code.replace("super::", "part::");
        }
        let code = code.replace("crate::", "").replace("part::", "crate::");
        for other in used(&code) {
            let (Some(other_floor), Some(own)) = (floor(&other), floor(part)) else {
                continue;
            };
            let is_above = other_floor < own || other == part;
            assert!(is_above, "{part} uses {other}, in {}", file.display());
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn uses_are_found_alone_and_in_groups() {
    let code = "use crate::{a::{b, c}, d}; fn f() { crate::g::h() }";
    assert_eq!(used(code), ["a", "d", "g"]);
}
