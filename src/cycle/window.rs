//! Determines the number of newest rows on which a generation is trained.

use serde::{Deserialize, Serialize};

/// Settings for the window of rows. The window grows with the total number of rows, but more
/// slowly, as in KataGo (Wu 2019, appendix C). Early rows, from weak play, therefore leave the
/// window soon, and later networks train on more rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WindowConfig {
    /// Total number of rows up to which the window contains all rows; above 0.
    pub start: f64,
    /// The window's growth per additional row just beyond `start`, in 0…1 (KataGo: 0.4).
    pub per_row: f64,
    /// The exponent that slows the growth, above 0 and at most 1 (KataGo: 0.65).
    pub exponent: f64,
}

impl Default for WindowConfig {
    fn default() -> WindowConfig {
        WindowConfig {
            start: 250_000.0,
            per_row: 0.4,
            exponent: 0.65,
        }
    }
}

impl WindowConfig {
    /// Returns the window's size in rows, given the total number of rows.
    pub fn size(&self, rows: u64) -> u64 {
        let all = rows as f64 / self.start;
        if all <= 1.0 {
            return rows;
        }
        let grown = self.per_row * (all.powf(self.exponent) - 1.0) / self.exponent;
        ((self.start * (1.0 + grown)) as u64).min(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_slower_than_the_rows() {
        let window = WindowConfig::default();
        assert_eq!(window.size(0), 0);
        assert_eq!(window.size(250_000), 250_000);
        let just_after = window.size(260_000) - 250_000;
        assert!((3_900..4_000).contains(&just_after), "{just_after}");
        // 250,000 · (1 + 0.4 · (100^0.65 − 1) / 0.65).
        assert_eq!(window.size(25_000_000) / 1000, 3_165);
        let sizes: Vec<u64> = (0..60).map(|rows| window.size(rows * 50_000)).collect();
        assert!(sizes.is_sorted());
    }
}
