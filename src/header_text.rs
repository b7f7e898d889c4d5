//! Texts that are sent in HTTP headers.

/// Returns a description of the first character of a credential that no header can carry: anything
/// but visible ASCII. A blank is not sendable either, because it ends the credential.
pub(crate) fn unsendable(credential: &str) -> Option<String> {
    let letter = credential.chars().find(|it| !it.is_ascii_graphic())?;
    let code = format!("U+{:04X}", u32::from(letter));
    Some(match letter {
        '\n' | '\r' => format!("a line break ({code})"),
        _ if letter.is_whitespace() => format!("a blank ({code})"),
        _ if letter.is_control() => format!("a control character ({code})"),
        _ => format!("the character {} ({code})", letter.escape_debug()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unsendable_character_is_described() {
        let every: String = (b'!'..=b'~').map(char::from).collect();
        assert_eq!(unsendable(&every), None);
        assert_eq!(unsendable(""), None);
        for (credential, character) in [
            ("schlüssel ", "the character ü (U+00FC)"),
            ("two words", "a blank (U+0020)"),
            ("a\tb", "a blank (U+0009)"),
            ("a\u{a0}b", "a blank (U+00A0)"),
            ("a\n", "a line break (U+000A)"),
            ("a\u{7}b", "a control character (U+0007)"),
            ("a\u{7f}b", "a control character (U+007F)"),
            ("a\u{200b}b", "the character \\u{200b} (U+200B)"),
            ("秘密", "the character 秘 (U+79D8)"),
        ] {
            assert_eq!(unsendable(credential).as_deref(), Some(character));
        }
    }
}
