//! Patterns of parameter names.

/// Whether `name` matches `pattern`, in which `*` matches any text, dots included,
/// and any other character matches itself.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(start) else {
        return false;
    };
    let Some((middle, end)) = rest.rsplit_once('*') else {
        return name.ends_with(rest);
    };
    // What is found first leaves most for the parts after it.
    for part in middle.split('*') {
        match name.split_once(part) {
            Some((_, after)) => name = after,
            None => return false,
        }
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_stand_for_any_text() {
        let name = "encoder.10.attention.output.weight";
        for pattern in [
            name,
            "*",
            "**",
            "encoder.*",
            "*.weight",
            "encoder.*.weight",
            "*attention*",
            "encoder.1*0.*.output.weight",
        ] {
            assert!(matches(pattern, name), "{pattern}");
        }
        for pattern in [
            "",
            "encoder",
            "encoder.1.*",
            "*.bias",
            "*.weight.*",
            "*output*output*",
        ] {
            assert!(!matches(pattern, name), "{pattern}");
        }
    }

    proptest! {
        /// Holds the matcher against all ways to cut the name.
        #[test]
        fn it_finds_a_way_where_there_is_one(pattern in "[ab*]{0,7}", name in "[ab]{0,8}") {
            fn slowly(pattern: &[u8], name: &[u8]) -> bool {
                match pattern.split_first() {
                    None => name.is_empty(),
                    Some((b'*', rest)) => (0..=name.len()).any(|cut| slowly(rest, &name[cut..])),
                    Some((first, rest)) => name.first() == Some(first) && slowly(rest, &name[1..]),
                }
            }
            prop_assert_eq!(matches(&pattern, &name), slowly(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
