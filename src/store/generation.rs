//! The manifest of a generation.

use super::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum size of a manifest in bytes.
const LARGEST: usize = 1 << 16;
/// Number of hexadecimal digits in a SHA-256.
const DIGITS: usize = 64;

/// A network of the loop, and how it was trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    /// The generation's number; 0 is the network that the loop began with.
    pub number: u64,
    /// The network's name in the store.
    pub network: String,
    /// SHA-256 of the network's file in hexadecimal digits.
    pub sha256: String,
    /// The generation from which training continued.
    pub parent: Option<u64>,
    /// Number of training steps since the loop began.
    pub steps: u64,
    /// Number of samples used in these steps.
    pub samples: u64,
    /// Number of these samples that came from the loop's own shards.
    pub drawn: u64,
    /// Number of rows in all shards when the training of this generation began.
    pub rows: u64,
    /// Number of these rows in the window that the generation was trained on.
    pub window: u64,
    /// Time at which the generation was finished, in seconds since 1970.
    pub time: u64,
    /// The gate's verdict; `None` if there is no gate, or if it has not judged the network yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Outcome>,
}

/// The outcome of a gating match, from the new network's view.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Whether the new network replaces the previous one.
    pub is_accepted: bool,
    /// The number of the generation that it played against.
    pub opponent: u64,
    /// Number of games won.
    pub wins: u64,
    /// Number of games drawn.
    pub draws: u64,
    /// Number of games lost.
    pub losses: u64,
    /// The log-likelihood ratio of the SPRT.
    pub llr: f64,
}

impl Outcome {
    /// Returns the Elo difference that corresponds to the score, between −800 and 800.
    pub fn elo(&self) -> f64 {
        let games = (self.wins + self.draws + self.losses) as f64;
        let score = (self.wins as f64 + self.draws as f64 / 2.0) / games.max(1.0);
        (-400.0 * (1.0 / score - 1.0).log10()).clamp(-800.0, 800.0)
    }
}

/// Returns the Elo difference between the newest accepted generation and the first one, according
/// to the gating matches, or `None` if there is no gate.
pub fn elo(generations: &[Generation]) -> Option<f64> {
    let mut by_number: BTreeMap<u64, f64> = BTreeMap::from([(0, 0.0)]);
    let mut newest = None;
    for generation in generations {
        if let Some(outcome) = generation.gate {
            let opponent = by_number.get(&outcome.opponent).copied().unwrap_or(0.0);
            let elo = opponent + outcome.elo();
            by_number.insert(generation.number, elo);
            if outcome.is_accepted {
                newest = Some(elo);
            } else {
                newest.get_or_insert(0.0);
            }
        }
    }
    newest
}

/// Why bytes are not a valid manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The bytes are not JSON of the expected form.
    #[error("this is not a generation manifest: {0}")]
    Form(#[from] serde_json::Error),
    /// A field has an impossible value.
    #[error("an inconsistent manifest: {0}")]
    Content(String),
}

impl Generation {
    /// Returns a generation with its number set and all other fields empty.
    pub fn unfinished(number: u64) -> Generation {
        Generation {
            number,
            network: Name::network(number).to_string(),
            sha256: String::new(),
            parent: None,
            steps: 0,
            samples: 0,
            drawn: 0,
            rows: 0,
            window: 0,
            time: 0,
            gate: None,
        }
    }

    /// Parses and checks the manifest with this number.
    ///
    /// # Errors
    /// [`ManifestError`], naming the problem.
    pub fn parse(bytes: &[u8], number: u64) -> Result<Generation, ManifestError> {
        let wrong = |what: String| Err(ManifestError::Content(what));
        if bytes.len() > LARGEST {
            return wrong(format!("it has {} bytes", bytes.len()));
        }
        let read: Generation = serde_json::from_slice(bytes)?;
        if read.number != number {
            return wrong(format!("it is of generation {}", read.number));
        }
        if let Err(error) = read.network.parse::<Name>() {
            return wrong(error.to_string());
        }
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if read.sha256.len() != DIGITS || !read.sha256.bytes().all(is_digit) {
            return wrong("its sha256 has not 64 hexadecimal digits".to_owned());
        }
        if read.parent.is_some_and(|parent| parent >= number) {
            return wrong("its parent is not before it".to_owned());
        }
        if read.drawn > read.samples || read.window > read.rows {
            return wrong("a part is larger than the whole".to_owned());
        }
        let is_finite = |outcome: Outcome| outcome.llr.is_finite();
        if !read.gate.is_none_or(is_finite) {
            return wrong("its likelihood ratio is not a number".to_owned());
        }
        Ok(read)
    }

    /// Returns the manifest's text.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("plain data")
    }

    /// Returns the network's name in the store.
    ///
    /// # Panics
    /// If the name is invalid, which it cannot be in a manifest that was parsed.
    pub fn network(&self) -> Name {
        self.network.parse().expect("checked when it was read")
    }

    /// Returns whether workers search with this network, because no gate has rejected it.
    pub fn is_accepted(&self) -> bool {
        self.gate.is_none_or(|outcome| outcome.is_accepted)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub fn generation(number: u64) -> Generation {
        Generation {
            number,
            network: Name::network(number).to_string(),
            sha256: "0".repeat(DIGITS),
            parent: number.checked_sub(1),
            steps: 10 * number,
            samples: 640 * number,
            drawn: 600 * number,
            rows: 100 * number,
            window: 90 * number,
            time: 1_700_000_000,
            gate: None,
        }
    }

    #[test]
    fn rejects_impossible_generations() {
        let good = generation(3);
        assert_eq!(Generation::parse(&good.to_json(), 3).unwrap(), good);
        let refused = |change: &dyn Fn(&mut Generation)| {
            let mut bad = good.clone();
            change(&mut bad);
            Generation::parse(&bad.to_json(), 3)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(&|it| it.number = 4).contains("generation 4"));
        assert!(refused(&|it| it.network = "../x.pt".to_owned()).contains("../x.pt"));
        assert!(refused(&|it| it.sha256 = "zz".to_owned()).contains("sha256"));
        assert!(refused(&|it| it.parent = Some(3)).contains("parent"));
        assert!(refused(&|it| it.drawn = it.samples + 1).contains("whole"));
        assert!(Generation::parse(b"{}", 0).is_err());
        assert!(Generation::parse(&[b' '; LARGEST + 1], 0).is_err());
    }

    #[test]
    fn scores_are_elo() {
        let outcome = |wins, draws, losses| Outcome {
            is_accepted: true,
            opponent: 0,
            wins,
            draws,
            losses,
            llr: 0.0,
        };
        assert_eq!(outcome(5, 10, 5).elo(), 0.0);
        assert!((outcome(3, 0, 1).elo() - 190.8).abs() < 0.1);
        assert_eq!(outcome(4, 0, 0).elo(), 800.0);
        assert_eq!(outcome(0, 0, 4).elo(), -800.0);
    }

    #[test]
    fn elo_adds_up_along_the_accepted() {
        let judged = |number, gate: Option<(u64, u64, u64, bool)>| Generation {
            gate: gate.map(|(opponent, wins, losses, is_accepted)| Outcome {
                is_accepted,
                opponent,
                wins,
                draws: 0,
                losses,
                llr: 0.0,
            }),
            ..Generation::unfinished(number)
        };
        assert_eq!(elo(&[judged(0, None)]), None);
        let up = judged(1, Some((0, 3, 1, true)));
        let down = judged(2, Some((1, 1, 3, false)));
        let again = judged(3, Some((1, 3, 1, true)));
        let elo = elo(&[judged(0, None), up, down, again]).unwrap();
        assert!((elo - 2.0 * 190.85).abs() < 0.1, "{elo}");
    }

    proptest! {
        #[test]
        fn manifests_come_back(number in 1u64.., llr in -9.0f64..9.0, accepted: bool) {
            let mut written = generation(1);
            written.number = number;
            written.parent = Some(number - 1);
            written.gate = Some(Outcome {
                is_accepted: accepted, opponent: 0, wins: 1, draws: 2, losses: 3, llr,
            });
            let read = Generation::parse(&written.to_json(), number).unwrap();
            prop_assert_eq!(read.is_accepted(), accepted);
            prop_assert_eq!(read, written);
        }

        #[test]
        fn any_bytes_are_read_without_panic(
            bytes: Vec<u8>,
            place in 0usize..400,
            byte: u8,
        ) {
            let _ = Generation::parse(&bytes, 0);
            let mut damaged = generation(1).to_json();
            let place = place % damaged.len();
            damaged[place] = byte;
            let _ = Generation::parse(&damaged, 1);
        }
    }
}
