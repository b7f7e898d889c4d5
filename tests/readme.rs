//! README says what the program says.

use std::fs;

/// What stands in README between `<!-- name -->` and `<!-- /name -->`.
fn block(name: &str) -> String {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let text = fs::read_to_string(readme).unwrap().replace("\r\n", "\n");
    let (_, after) = text.split_once(&format!("<!-- {name} -->\n")).unwrap();
    let (block, _) = after.split_once(&format!("<!-- /{name} -->")).unwrap();
    block.trim().to_owned()
}

#[test]
fn the_options_table_is_the_program_s() {
    let table = tessera::uci::options::markdown();
    let table = table.trim();
    assert!(
        block("options") == table,
        "README's options differ from the program's; put this there:\n{table}"
    );
}
