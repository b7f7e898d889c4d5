//! What a mistyped name was probably meant to be.

/// Likeness below which a name is no suggestion, by Jaro and Winkler's measure.
const LEAST_LIKENESS: f64 = 0.7;

/// For serde's complaint about an unknown name, "unknown field `a`, expected one
/// of `b`, `c`", the known name that comes nearest, as the end of a sentence;
/// empty for other complaints.
pub(super) fn hint(complaint: &str) -> String {
    if !complaint.contains("unknown field") && !complaint.contains("unknown variant") {
        return String::new();
    }
    let mut quoted = complaint.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next() else {
        return String::new();
    };
    let likeness = |known: &str| strsim::jaro_winkler(unknown, known);
    let nearest = quoted.max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
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
