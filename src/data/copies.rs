//! Measures how long generated games follow known games, which shows whether the network that
//! generated them has memorised its training data.

use super::record::Record;
use super::replay::{ReplayError, main_line};
use crate::chess::Game;
use crate::encode::Vocabulary;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Lengths in plies of the beginnings that are compared.
pub const PLIES: [usize; 6] = [10, 20, 30, 40, 60, 80];

/// The known games, as hashes of their beginnings.
#[derive(Debug, Default)]
pub struct KnownGames {
    /// Hashes of the beginnings of known games, for each length in [`PLIES`].
    beginnings: [HashSet<u64>; PLIES.len()],
    whole: HashSet<u64>,
}

/// Counts of games by whether they follow a known game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Followers {
    /// Number of games with at least this length.
    pub games: u64,
    /// Number of these games that agree with a known game up to this length.
    pub known: u64,
}

/// Counts for each length in [`PLIES`], and for whole games.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Copies {
    /// Counts for each length in [`PLIES`], over games with at least that number of plies.
    pub beginnings: [Followers; PLIES.len()],
    /// Counts for whole games.
    pub whole: Followers,
}

impl KnownGames {
    /// Adds a known game. Games that do not start at the initial position are ignored.
    ///
    /// # Errors
    /// [`ReplayError`] if the game cannot be replayed.
    pub fn add(&mut self, record: &Record) -> Result<(), ReplayError> {
        if let Some(hashes) = hashes(record)? {
            for (plies, known) in PLIES.iter().zip(&mut self.beginnings) {
                known.extend(hashes.get(*plies));
            }
            self.whole.extend(hashes.last());
        }
        Ok(())
    }

    /// Compares a game with the known games and adds the result to `copies`. Games that do not
    /// start at the initial position are ignored.
    ///
    /// # Errors
    /// [`ReplayError`] if the game cannot be replayed.
    pub fn count(&self, record: &Record, copies: &mut Copies) -> Result<(), ReplayError> {
        let Some(hashes) = hashes(record)? else {
            return Ok(());
        };
        let compare = |count: &mut Followers, hash: Option<&u64>, known: &HashSet<u64>| {
            if let Some(hash) = hash {
                count.games += 1;
                count.known += u64::from(known.contains(hash));
            }
        };
        for (place, plies) in PLIES.iter().enumerate() {
            let (count, known) = (&mut copies.beginnings[place], &self.beginnings[place]);
            compare(count, hashes.get(*plies), known);
        }
        compare(&mut copies.whole, hashes.last(), &self.whole);
        Ok(())
    }
}

/// Returns hashes of a game's first 0, 1, 2, … moves, or `None` if the game does not start at the
/// initial position.
fn hashes(record: &Record) -> Result<Option<Vec<u64>>, ReplayError> {
    if record.fen.is_some() {
        return Ok(None);
    }
    let game: Game = main_line(record)?;
    let mut hasher = DefaultHasher::new();
    let mut hashes = vec![hasher.finish()];
    for plies in game.plies().windows(2) {
        let played = plies[1].played;
        let token = played.and_then(|mv| Vocabulary::Uci.token(&plies[0].position, mv));
        token.hash(&mut hasher);
        hashes.push(hasher.finish());
    }
    Ok(Some(hashes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::pgn::parse_game;

    fn game(moves: &str) -> Record {
        parse_game(format!("{moves} *").as_bytes()).unwrap()
    }

    #[test]
    fn games_follow_others_to_where_they_leave_them() {
        let shuffle = "Nf3 Nf6 Ng1 Ng8 ".repeat(3);
        let mut known = KnownGames::default();
        known.add(&game(&format!("{shuffle} e4"))).unwrap();
        let mut copies = Copies::default();
        for moves in [
            format!("{shuffle} e4"),
            format!("{shuffle} e4 e5"),
            format!("e4 e5 {shuffle}"),
            shuffle.clone(),
            "e4".to_owned(),
        ] {
            known.count(&game(&moves), &mut copies).unwrap();
        }
        // Four games have ten plies, and the third of them starts differently.
        let ten = Followers { games: 4, known: 3 };
        assert_eq!(copies.beginnings[0], ten);
        assert_eq!(copies.beginnings[1], Followers::default());
        // A game that is only the beginning of a known game is not counted as a copy.
        assert_eq!(copies.whole, Followers { games: 5, known: 1 });
    }
}
