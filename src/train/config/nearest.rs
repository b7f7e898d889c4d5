//! Suggests corrections for mistyped names.

/// Minimum Jaro–Winkler similarity of a suggestion.
const LEAST_LIKENESS: f64 = 0.7;

/// Returns a hint for serde's error about an unknown name, such as "unknown field `a`, expected one
/// of `b`, `c`". The hint suggests the most similar expected name, and can be appended to the
/// error. For other errors, the hint is empty.
pub(super) fn hint(complaint: &str) -> String {
    if !complaint.contains("unknown field") && !complaint.contains("unknown variant") {
        return String::new();
    }
    let mut quoted = complaint.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next() else {
        return String::new();
    };
    let likeness = |known: &str| strsim::jaro_winkler(unknown, known);
    let known: Vec<&str> = quoted.collect();
    // `max_by` returns the last maximum; reversing the names makes the first one win a tie.
    let nearest = known.into_iter().rev();
    let nearest = nearest.max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    match nearest.filter(|known| likeness(known) >= LEAST_LIKENESS) {
        Some(known) => format!("; did you mean `{known}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let complaint = "unknown field `warm_up`, expected one of `peak`, `warmup`, `shape`";
        assert_eq!(hint(complaint), "; did you mean `warmup`?");
        let complaint = "unknown field `x`, expected one of `peak`, `warmup`, `shape`";
        assert_eq!(hint(complaint), "");
        assert_eq!(hint("invalid type: string \"x\", expected f64"), "");
    }
}
