//! Represents whole games as token sequences.

use super::{Columns, Examples};
use crate::data::label::TargetRules;
use crate::data::record::Record;
use crate::data::replay::{ReplayError, main_line};
use crate::data::sample::Wdl;
use crate::encode::{GameEnd, Vocabulary};
use shakmaty::{Color, Position};
use std::ops::Range;
use std::sync::Arc;

/// Games that begin at the initial position, from the start token to the end token.
#[derive(Clone, Debug, PartialEq)]
pub struct GameExamples {
    /// The vocabulary of tokens. Games that contain moves outside it are skipped.
    pub vocabulary: Arc<Vocabulary>,
    /// Maximum number of tokens that the network reads from a game; longer games are truncated.
    pub context: usize,
}

/// A game as tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct GameTokens {
    /// The start token, the moves, and the end token if the game has a result and has not been
    /// truncated. A network reads all tokens except the last, and predicts all tokens except the
    /// first.
    pub tokens: Vec<u16>,
    /// Ratings of White and Black, 0 where unknown.
    pub ratings: [u16; 2],
    /// The result for White, if known.
    pub result: Option<Wdl>,
}

impl GameExamples {
    fn tokens(&self, record: &Record) -> Result<Option<GameTokens>, ReplayError> {
        if record.fen.is_some() {
            return Ok(None);
        }
        let game = main_line(record)?;
        let vocabulary = &self.vocabulary;
        let mut tokens = vec![vocabulary.start()];
        for plies in game.plies().windows(2) {
            let token = plies[1]
                .played
                .and_then(|mv| vocabulary.token(&plies[0].position, mv));
            match token {
                Some(token) => tokens.push(token),
                None => return Ok(None),
            }
        }
        if let Some(result) = record.result {
            let winner = match result {
                Wdl::Win => Some(Color::White),
                Wdl::Draw => None,
                Wdl::Loss => Some(Color::Black),
            };
            let is_mate = game.position().is_checkmate();
            tokens.push(vocabulary.end(GameEnd::new(winner, is_mate)));
        }
        // Keep one token more than the network reads, because the last token is only a target.
        tokens.truncate(self.context + 1);
        let ratings = record.ratings;
        let ratings = [ratings.white, ratings.black].map(|rating| rating.unwrap_or(0));
        let game = GameTokens {
            tokens,
            ratings,
            result: record.result,
        };
        Ok((game.tokens.len() > 1).then_some(game))
    }
}

impl Examples for GameExamples {
    type Example = GameTokens;
    type Columns = GameColumns;

    fn expected(&self, games: f64, _positions: f64) -> f64 {
        games
    }

    fn of_record(
        &self,
        record: &Record,
        _rules: &TargetRules,
        mut keep: impl FnMut() -> bool,
        mut emit: impl FnMut(GameTokens),
    ) -> Result<(), ReplayError> {
        if keep()
            && let Some(game) = self.tokens(record)?
        {
            emit(game);
        }
        Ok(())
    }
}

/// A batch of B games.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GameColumns {
    /// The games.
    pub games: Vec<GameTokens>,
}

impl Columns for GameColumns {
    type Example = GameTokens;

    fn push(&mut self, game: &GameTokens) {
        self.games.push(game.clone());
    }

    fn len(&self) -> usize {
        self.games.len()
    }

    fn part(&self, places: Range<usize>) -> GameColumns {
        GameColumns {
            games: self.games[places].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Curve;
    use crate::data::pgn::parse_game;
    use crate::encode::Token;

    const RULES: TargetRules = TargetRules {
        evals: None,
        played: true,
        noise: false,
        curve: Curve::Lc0,
        alternatives: None,
    };

    fn games(context: usize) -> GameExamples {
        GameExamples {
            vocabulary: Arc::new(Vocabulary::Uci),
            context,
        }
    }

    fn examples(games: &GameExamples, pgn: &str) -> Vec<GameTokens> {
        let record = parse_game(pgn.as_bytes()).unwrap();
        let mut found = Vec::new();
        games
            .of_record(&record, &RULES, || true, |game| found.push(game))
            .unwrap();
        found
    }

    const MATE: &str = "[WhiteElo \"1400\"]\n\n1. f3 e5 2. g4 (2. d4 exd4) Qh4# 0-1";

    #[test]
    fn a_game_is_its_main_line_with_its_end() {
        let games = games(512);
        let [game] = &examples(&games, MATE)[..] else {
            panic!("one game");
        };
        let texts: Vec<_> = game.tokens[1..5]
            .iter()
            .map(|&token| games.vocabulary.text(token).unwrap())
            .collect();
        assert_eq!(texts, ["f2f3", "e7e5", "g2g4", "d8h4"]);
        let end = games.vocabulary.read(game.tokens[5]);
        assert_eq!(end, Some(Token::End(GameEnd::BlackMates)));
        assert_eq!((game.ratings, game.result), ([1400, 0], Some(Wdl::Loss)));
        let resigned = &examples(&games, "1. e4 e5 1-0")[0];
        let end = games.vocabulary.read(resigned.tokens[3]);
        assert_eq!(end, Some(Token::End(GameEnd::WhiteWins)));
        assert_eq!(examples(&games, "1. e4 e5 *")[0].tokens.len(), 3);
    }

    #[test]
    fn long_games_are_cut_and_others_left_out() {
        let cut = &examples(&games(3), MATE)[0];
        assert_eq!(cut.tokens.len(), 4);
        assert_eq!(games(3).vocabulary.text(cut.tokens[3]).unwrap(), "g2g4");
        let study = "[FEN \"8/8/8/8/8/4k3/4p3/4K2R w K - 0 1\"]\n\n1. Rh3# 1-0";
        assert!(examples(&games(3), &study.replace('#', "+")).is_empty());
        assert!(examples(&games(3), "*").is_empty());
        let few = GameExamples {
            vocabulary: Arc::new(Vocabulary::san(["f3".to_owned()]).unwrap()),
            context: 9,
        };
        assert!(examples(&few, MATE).is_empty());
    }
}
