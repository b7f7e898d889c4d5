//! The measured strength of a generation.

use super::{ManifestError, Name, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum size of a measurement in bytes.
const LARGEST: usize = 1 << 12;

/// The games of a generation's network against an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Games {
    /// The opponent's generation number.
    pub opponent: u64,
    /// Number of games won.
    pub wins: u64,
    /// Number of games drawn.
    pub draws: u64,
    /// Number of games lost.
    pub losses: u64,
}

impl Games {
    /// Returns the lower end of the 95 % interval of the Elo difference, the difference that
    /// corresponds to the score, and the upper end. All three may be infinite.
    ///
    /// This is Wilson's interval of the score, in which a draw counts as half a win and half a
    /// loss. The interval is somewhat too wide if there are many draws.
    pub fn elo(&self) -> [f64; 3] {
        /// The 97.5 % quantile of the normal distribution.
        const Z: f64 = 1.96;
        let games = (self.wins + self.draws + self.losses).max(1) as f64;
        let score = (self.wins as f64 + self.draws as f64 / 2.0) / games;
        let centre = score + Z * Z / (2.0 * games);
        let spread = (score * (1.0 - score) / games + (Z / (2.0 * games)).powi(2)).sqrt();
        let end = |sign: f64| (centre + sign * Z * spread) / (1.0 + Z * Z / games);
        // Rounding must not lead outside 0…1.
        let (low, high) = (end(-1.0).max(0.0), end(1.0).min(1.0));
        let low = if score == 0.0 { 0.0 } else { low };
        let high = if score == 1.0 { 1.0 } else { high };
        [low, score, high].map(|score| -400.0 * (1.0 / score - 1.0).log10())
    }
}

impl fmt::Display for Games {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Games {
            wins,
            draws,
            losses,
            ..
        } = self;
        write!(formatter, "{wins}–{draws}–{losses}, ")?;
        match self.elo() {
            [low, _, f64::INFINITY] => write!(formatter, "more than {low:+.0} Elo"),
            [f64::NEG_INFINITY, _, high] => write!(formatter, "less than {high:+.0} Elo"),
            [low, _, high] => write!(formatter, "{low:+.0} to {high:+.0} Elo"),
        }
    }
}

/// The measured strength of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strength {
    /// The generation's number.
    pub number: u64,
    /// Games against the network that the loop began with.
    pub first: Games,
    /// Games against the previous network that no gate had rejected.
    pub previous: Games,
}

impl Strength {
    /// Parses the measurement of the generation with this number.
    ///
    /// # Errors
    /// [`ManifestError`], naming the problem.
    pub fn parse(bytes: &[u8], number: u64) -> Result<Strength, ManifestError> {
        let wrong = |what: String| Err(ManifestError::Content(what));
        if bytes.len() > LARGEST {
            return wrong(format!("it has {} bytes", bytes.len()));
        }
        let read: Strength = serde_json::from_slice(bytes)?;
        match read.number == number {
            true => Ok(read),
            false => wrong(format!("it is of generation {}", read.number)),
        }
    }

    /// Returns the measurement's text.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("plain data")
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "against the first network {}", self.first)?;
        match self.previous.opponent == self.first.opponent {
            true => Ok(()),
            false => write!(formatter, "; against the previous one {}", self.previous),
        }
    }
}

impl Store {
    /// Adds the measured generations that `found` lacks. The listing may lag.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached, or if a measurement is invalid.
    pub fn add_strengths(&self, found: &mut BTreeMap<u64, Strength>) -> Result<(), StoreError> {
        let names = self.list(Name::STRENGTHS)?;
        for name in names {
            let number = name.number().filter(|&it| Name::strength(it) == name);
            let Some(number) = number.filter(|number| !found.contains_key(number)) else {
                continue;
            };
            let Some(bytes) = self.get(&name)? else {
                continue;
            };
            let read = Strength::parse(&bytes, number);
            let read = read.map_err(|source| StoreError::Manifest {
                path: self.path(&name),
                source,
            })?;
            found.insert(number, read);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn games(wins: u64, draws: u64, losses: u64) -> Games {
        Games {
            opponent: 0,
            wins,
            draws,
            losses,
        }
    }

    #[test]
    fn intervals_hold_the_score_and_are_open_after_a_clean_score() {
        let [low, even, high] = games(5, 10, 5).elo();
        assert_eq!(even, 0.0);
        assert!(
            (low + high).abs() < 1e-9 && (140.0..170.0).contains(&high),
            "{high}"
        );
        // A score of ¾ in 100 games: Wilson's interval is 0.657 to 0.825.
        let [low, middle, high] = games(75, 0, 25).elo();
        assert!((middle - 190.8).abs() < 0.1, "{middle}");
        assert!(
            (low - 112.9).abs() < 0.5 && (high - 268.9).abs() < 0.5,
            "{low} {high}"
        );
        let [low, middle, high] = games(20, 0, 0).elo();
        assert_eq!((middle, high), (f64::INFINITY, f64::INFINITY));
        assert!((low - 286.6).abs() < 0.1, "{low}");
        assert_eq!(games(20, 0, 0).to_string(), "20–0–0, more than +287 Elo");
        assert_eq!(games(0, 0, 20).to_string(), "0–0–20, less than -287 Elo");
        assert!(games(5, 10, 5).to_string().starts_with("5–10–5, -1"));
    }

    #[test]
    fn measurements_are_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let mut found = BTreeMap::new();
        store.add_strengths(&mut found).unwrap();
        assert!(found.is_empty());
        let strength = |number| Strength {
            number,
            first: games(3, 0, 1),
            previous: Games {
                opponent: number - 1,
                ..games(1, 2, 1)
            },
        };
        let put = |name, number| store.put(&name, &strength(number).to_json()).unwrap();
        for number in [4, 1] {
            put(Name::strength(number), number);
        }
        store.add_strengths(&mut found).unwrap();
        assert_eq!(found, [(1, strength(1)), (4, strength(4))].into());
        assert!(!strength(1).to_string().contains("previous"));
        assert!(
            strength(4)
                .to_string()
                .contains("; against the previous one 1–2–1, ")
        );
        put(Name::strength(5), 6);
        let error = store.add_strengths(&mut found).unwrap_err().to_string();
        assert!(
            error.contains("000005.json") && error.contains("generation 6"),
            "{error}"
        );
    }
}
