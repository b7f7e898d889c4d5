//! Checks the module map in src/lib.rs: a module may use only those above it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The segments of a path, which may be absolute or relative.
type Names = Vec<String>;

/// Returns the modules in the order of the table, lowest layer first.
fn map(lib: &str) -> Vec<&str> {
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    let modules = rows.filter_map(|row| row.split_once("`] |"));
    modules.map(|(module, _)| module).collect()
}

/// Returns the Rust files below a folder.
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

/// Returns the modules that code refers to as `crate::module` or in `crate::{module::…, …}`.
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
            // Modules outside the map may be used by all others, and use none of them.
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

/// Such tests would never run, because Cargo.toml disables the programs' tests.
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

/// Returns the parts of the search, by rows of their table.
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
            assert!(part == "tests" || floor(part).is_some(), "{part}");
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
fn uses_are_found_singly_and_in_groups() {
    let code = "use crate::{a::{b, c}, d}; fn f() { crate::g::h() }";
    assert_eq!(used(code), ["a", "d", "g"]);
}

/// Returns the non-test code of every module, without comments.
fn modules(src: &Path) -> BTreeMap<Names, String> {
    let code = |file: PathBuf| {
        let inside = file.strip_prefix(src).unwrap().with_extension("");
        let names: Names = inside
            .iter()
            .map(|name| name.to_str().unwrap().to_owned())
            .collect();
        let is_product = !["bin", "cli", "lib", "main"].contains(&&*names[0]);
        let is_test = names.iter().any(|name| name.ends_with("tests"));
        (is_product && !is_test).then(|| {
            let text = fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let lines = text.lines().map(|line| line.split("//").next().unwrap());
            (names, lines.collect::<Vec<_>>().join("\n"))
        })
    };
    files(src).into_iter().filter_map(code).collect()
}

/// Returns the paths in a `use` tree.
fn leaves(tree: &str) -> Vec<Names> {
    let names = |path: &str| -> Names {
        let path = path.split(" as ").next().unwrap().split("::");
        let names = path.map(|name| name.trim().to_owned());
        names.filter(|name| !name.is_empty()).collect()
    };
    let Some((head, group)) = tree.split_once('{') else {
        return vec![names(tree)];
    };
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in group.char_indices() {
        if matches!(letter, ',' | '}') && depth == 0 {
            let branch = leaves(&group[start..at]).into_iter();
            let branch = branch.filter(|branch| !branch.is_empty());
            found.extend(branch.map(|branch| [names(head), branch].concat()));
            start = at + 1;
        }
        depth += i32::from(letter == '{') - i32::from(letter == '}');
    }
    found
}

/// Returns the paths that code imports with `use`, and those that it writes out from `crate` or
/// `super`.
fn named(code: &str) -> (Vec<Names>, Vec<Names>) {
    let (mut imported, mut written) = (Vec::new(), Vec::new());
    let mut rest = String::new();
    for (place, part) in code.split(';').enumerate() {
        let part = if place == 0 { part } else { part.trim_start() };
        match part.rsplit_once("use ") {
            Some((before, tree)) if before.is_empty() || before.ends_with([' ', '\n']) => {
                imported.extend(leaves(tree));
            }
            _ => rest.push_str(part),
        }
    }
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    for word in rest.split(|letter| !is_name(letter)) {
        if word.starts_with("crate::") || word.starts_with("super::") {
            written.extend(leaves(word));
        }
    }
    (imported, written)
}

/// Resolves a path used in a module to a path from the crate root.
fn absolute(path: &[String], module: &[String], all: &BTreeMap<Names, String>) -> Option<Names> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    let own = match &*path[0] {
        "crate" => &[],
        "self" => module,
        "super" => &module[..module.len().checked_sub(ups)?],
        child => {
            let child = [module, &[child.to_owned()]].concat();
            return all.contains_key(&child).then(|| [module, path].concat());
        }
    };
    Some([own, &path[ups.max(usize::from(ups == 0))..]].concat())
}

/// Returns the module that defines the target of a path, following re-exports.
fn home(
    mut path: Names,
    all: &BTreeMap<Names, String>,
    passed: &BTreeMap<Names, BTreeMap<String, Names>>,
) -> Option<Names> {
    for _ in 0..9 {
        let end = (1..=path.len())
            .rev()
            .find(|&end| all.contains_key(&path[..end]))?;
        let (module, rest) = path.split_at(end);
        let next = rest.first().and_then(|name| passed.get(module)?.get(name));
        match next {
            Some(next) => path = [next, &rest[1..]].concat(),
            None => return Some(module.to_vec()),
        }
    }
    None
}

/// Returns which modules use which others through `crate`, `super` and re-exports.
fn uses(all: &BTreeMap<Names, String>) -> BTreeSet<(Names, Names)> {
    let mut passed = BTreeMap::new();
    let mut found = Vec::new();
    for (module, code) in all {
        let (imported, written) = named(code);
        let absolute = |path: &Names| absolute(path, module, all);
        let imported: Vec<Names> = imported.iter().filter_map(absolute).collect();
        let names = imported
            .iter()
            .filter_map(|path| Some((path.last()?.clone(), path.clone())));
        passed.insert(module.clone(), names.collect::<BTreeMap<_, _>>());
        let written = written.iter().filter_map(absolute);
        found.extend(
            imported
                .into_iter()
                .chain(written)
                .map(|path| (module, path)),
        );
    }
    let homes = found.into_iter().filter_map(|(module, path)| {
        let other = home(path, all, &passed)?;
        (*module != other).then(|| (module.clone(), other))
    });
    homes.collect()
}

/// Returns the uses that form a cycle among the parts of a folder: none if there is no cycle.
fn circle(folder: &[String], uses: &BTreeSet<(Names, Names)>) -> BTreeSet<(String, String)> {
    let part = |module: &Names| match module.starts_with(folder) {
        true => module.get(folder.len()).cloned(),
        false => None,
    };
    let edges = uses
        .iter()
        .filter_map(|(from, to)| Some((part(from)?, part(to)?)));
    let mut edges: BTreeSet<(String, String)> = edges.filter(|(from, to)| from != to).collect();
    loop {
        // A part of a cycle uses another part, and another part uses it.
        let (users, used): (BTreeSet<_>, BTreeSet<_>) = edges.iter().cloned().unzip();
        let before = edges.len();
        edges.retain(|(from, to)| users.contains(to) && used.contains(from));
        if edges.len() == before {
            return edges;
        }
    }
}

#[test]
fn no_sibling_modules_form_a_cycle() {
    let all = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let uses = uses(&all);
    assert!(uses.len() > 1000, "{}", uses.len());
    let folders = all.keys().map(|module| &module[..module.len() - 1]);
    let folders: BTreeSet<&[String]> = folders.filter(|folder| !folder.is_empty()).collect();
    for folder in folders {
        let cycle = circle(folder, &uses);
        assert!(cycle.is_empty(), "{folder:?} has a cycle: {cycle:?}");
    }
}

#[test]
fn paths_are_found_in_all_their_forms() {
    let code = |text: &str| text.to_owned();
    let names = |path: &str| -> Names { path.split("::").map(str::to_owned).collect() };
    let all = BTreeMap::from([
        (
            names("room"),
            code("mod a; mod b; pub use a::{Deep, other::*};"),
        ),
        (
            names("room::a"),
            code("use super::b::{self, f as g}; struct Deep;"),
        ),
        (names("room::b"), code("fn f(deep: &crate::room::Deep) {}")),
        (names("room::b::c"), code("use super::super::a;")),
    ]);
    let uses = uses(&all);
    let has = |from, to| uses.contains(&(names(from), names(to)));
    assert!(has("room::a", "room::b") && has("room::b", "room::a"));
    assert!(has("room::b::c", "room::a") && !has("room::b", "room"));
    assert_eq!(circle(&names("room"), &uses).len(), 2);
}

/// Returns the entries of a list in `tools/test`.
fn listed(script: &str, name: &str) -> Vec<String> {
    let (_, rest) = script.split_once(&format!("\n{name}=(")).unwrap();
    let (list, _) = rest.split_once(')').unwrap();
    list.split_whitespace().map(str::to_owned).collect()
}

/// Tests that seed libtorch's only random number generator would disturb each other. In
/// `tools/test`, they share a process in which one test runs after another.
#[test]
fn tests_that_seed_libtorch_run_one_after_another() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = fs::read_to_string(root.join("tools/test")).unwrap();
    let mut count = 0;
    for (folder, name) in [("src", "seeding_units"), ("tests", "seeding_ends")] {
        let modules = listed(&script, name);
        let folder = root.join(folder);
        for file in files(&folder) {
            let text = fs::read_to_string(&file).unwrap();
            // `networks` has helpers, no tests.
            let helpers = ["networks::plain::", "plain::write("];
            let draws =
                text.contains("tch::manual_seed(") || helpers.iter().any(|it| text.contains(it));
            let inside = file.strip_prefix(&folder).unwrap().with_extension("");
            let inside: Vec<_> = inside.iter().map(|part| part.to_str().unwrap()).collect();
            let path = inside.join("::") + "::";
            if !draws
                || path.starts_with("networks::")
                || path == "map::"
                || path.starts_with("bin::")
            {
                continue;
            }
            assert!(
                modules.iter().any(|module| path.contains(module.as_str())),
                "{} seeds libtorch, but `{name}` in tools/test does not list its module",
                file.display()
            );
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}
