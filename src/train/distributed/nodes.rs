//! Parses Slurm's lists of nodes.

/// Returns the first node in a list such as `gpu[007-012,20],login` or `rack[1-2]node[3-4]`, or
/// `None` if the text is not such a list.
pub(super) fn first_node(list: &str) -> Option<String> {
    let mut first = String::new();
    let mut rest = list.trim();
    loop {
        match rest.find([',', '[', ']']) {
            Some(at) if rest[at..].starts_with('[') => {
                let (inside, after) = rest[at + 1..].split_once(']')?;
                let number = inside.split([',', '-']).next()?;
                let is_range = inside.split(',').all(is_range);
                if !is_range {
                    return None;
                }
                first.push_str(&rest[..at]);
                first.push_str(number);
                rest = after;
            }
            Some(at) if rest[at..].starts_with(']') => return None,
            end => {
                first.push_str(&rest[..end.unwrap_or(rest.len())]);
                let is_name = |c: char| c.is_alphanumeric() || "-._:".contains(c);
                return (!first.is_empty() && first.chars().all(is_name)).then_some(first);
            }
        }
    }
}

/// Returns whether `text` is a number, or two numbers separated by a dash.
fn is_range(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('-') {
        Some((first, last)) => is_number(first) && is_number(last),
        None => is_number(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_of_slurms_manual_are_read() {
        for (list, first) in [
            ("node1", "node1"),
            ("node1,node2", "node1"),
            ("node[1-4]", "node1"),
            ("node[001-128,130]", "node001"),
            ("node[7,3-4]-ib,x", "node7-ib"),
            ("rack[0-3]node[01-64]", "rack0node01"),
            ("gpu-a.cluster.org", "gpu-a.cluster.org"),
        ] {
            assert_eq!(first_node(list).as_deref(), Some(first), "{list}");
        }
        for list in [
            "", ",a", "a[", "a[1-", "a]", "a[x]", "a[]", "a b", "a[1-2-3]",
        ] {
            assert_eq!(first_node(list), None, "{list}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(list in ".*") {
            if let Some(first) = first_node(&list) {
                prop_assert!(!first.is_empty() && !first.contains(['[', ']', ',']));
            }
        }

        #[test]
        fn a_list_begins_with_its_first_node(
            name in "[a-z][a-z0-9-]{0,5}",
            first in 0u32..2000,
            more in proptest::collection::vec(0u32..2000, 0..4),
            width in 0usize..5,
        ) {
            let ranges: Vec<String> = std::iter::once(format!("{first:0width$}"))
                .chain(more.iter().map(|from| format!("{from:0width$}-{:0width$}", from + 1)))
                .collect();
            let list = format!("{name}[{}],other", ranges.join(","));
            prop_assert_eq!(first_node(&list), Some(format!("{name}{first:0width$}")));
        }
    }
}
