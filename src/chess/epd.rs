//! Lines in EPD (Extended Position Description): four fields of a FEN, followed by operations such
//! as `bm Qg6; id "WAC.001";`. The parser accepts deviations that occur in common files.

/// Splits a line into the FEN and the operations.
pub(crate) fn split(text: &str) -> (String, Vec<String>) {
    let mut rest = text.trim();
    let mut fen: Vec<&str> = Vec::new();
    while fen.len() < 4 {
        let (field, _) = next_word(rest);
        if field.is_empty() {
            break;
        }
        // In `-1 12`, the space after the empty en-passant field is missing.
        let glued = fen.len() == 3 && field.starts_with('-');
        let length = if glued { 1 } else { field.len() };
        fen.push(&field[..length]);
        rest = &rest.trim_start()[length..];
    }
    // The two counters of a full FEN, or stray dashes and semicolons, may precede the first
    // operation.
    loop {
        let (word, after) = next_word(rest);
        let counter = word.parse::<u32>().is_ok();
        if !counter && word != "-" && word != ";" {
            break;
        }
        if counter {
            fen.push(word);
        }
        rest = after;
    }
    let mut operations = Vec::new();
    let mut quoted = false;
    let mut operation = String::new();
    for letter in rest.chars() {
        quoted ^= letter == '"';
        if letter == ';' && !quoted {
            operations.push(std::mem::take(&mut operation));
        } else {
            operation.push(letter);
        }
    }
    operations.push(operation);
    let operations = operations
        .iter()
        .map(|operation| operation.trim())
        .filter(|operation| !operation.is_empty())
        .map(str::to_owned);
    (fen.join(" "), operations.collect())
}

fn next_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}
