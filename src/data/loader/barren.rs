//! Detects sources that unexpectedly give no samples.

use std::collections::HashMap;

/// A source without samples is reported if at least this number of samples was expected. A source
/// with fewer expected samples may be empty by chance, because samples are held out for validation
/// or selected at a low rate.
const TELLING: f64 = 200.0;

/// The expected number of samples so far for each source that has given none; `None` if the source
/// has given samples or has been reported.
#[derive(Debug, Default)]
pub(super) struct Barren(HashMap<u32, Option<f64>>);

impl Barren {
    /// Counts a visit to one of a source's blocks. If the source has given no samples so far
    /// although enough were expected, returns the expected number; later visits return `None`.
    pub(super) fn note(&mut self, source: u32, expected: f64, found: usize) -> Option<f64> {
        let so_far = self.0.entry(source).or_insert(Some(0.0));
        let total = (*so_far)? + expected;
        let is_barren = found == 0 && total >= TELLING;
        *so_far = (found == 0 && !is_barren).then_some(total);
        is_barren.then_some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_source_is_told_of_once() {
        let mut barren = Barren::default();
        let told: Vec<_> = (0..9)
            .filter_map(|_| {
                assert_eq!(barren.note(1, 50.0, 1), None);
                barren.note(0, 50.0, 0)
            })
            .collect();
        assert_eq!(told, [200.0]);
    }

    #[test]
    fn sources_may_run_dry_after_a_sample() {
        let mut barren = Barren::default();
        let told = [3, 0, 0, 0].map(|found| barren.note(7, 150.0, found));
        assert_eq!(told, [None; 4]);
    }
}
