//! Continues human openings with random moves.
//!
//! A network that reads only good games learns which moves are usual. Random moves reach unusual
//! positions, with hanging pieces, exposed kings and checks from all sides, in which only the rules
//! help. A continued game is no longer than the original, so training costs no more.

use crate::chess::Game;
use crate::data::examples::GameTokens;
use crate::data::sample::Wdl;
use crate::encode::{GameEnd, Token, Vocabulary};
use rand::Rng;
use shakmaty::{Color, Position};

/// Returns the game up to a random ply, continued with random legal moves until the game ends or
/// has its original number of tokens.
pub(super) fn go_on(
    game: &GameTokens,
    vocabulary: &Vocabulary,
    random: &mut impl Rng,
) -> GameTokens {
    let plies = game.tokens[1..]
        .iter()
        .take_while(|&&token| matches!(vocabulary.read(token), Some(Token::Move(_))))
        .count();
    let kept = random.random_range(0..=plies);
    let mut tokens = game.tokens[..=kept].to_vec();
    let mut played = Game::default();
    for &token in &tokens[1..] {
        match vocabulary.legal_move(played.position(), token) {
            Some(mv) => played.play(mv),
            None => return game.clone(),
        }
    }
    let mut result = None;
    while tokens.len() < game.tokens.len() {
        let position = played.position();
        if let Some(outcome) = position.outcome().known() {
            let winner = outcome.winner();
            tokens.push(vocabulary.end(GameEnd::new(winner, position.is_checkmate())));
            result = Some(match winner {
                Some(Color::White) => Wdl::Win,
                Some(Color::Black) => Wdl::Loss,
                None => Wdl::Draw,
            });
            break;
        }
        let moves = position.legal_moves();
        let mv = moves[random.random_range(0..moves.len())];
        // The vocabulary may have been collected from games in which this move never occurred.
        let Some(token) = vocabulary.token(position, mv) else {
            break;
        };
        tokens.push(token);
        played.play(mv);
    }
    GameTokens {
        tokens,
        ratings: game.ratings,
        result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    const MOVES: &str = "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1";

    fn game() -> GameTokens {
        let vocabulary = Vocabulary::Uci;
        let token = |text: &str| {
            (0..vocabulary.moves() as u16)
                .find(|&it| vocabulary.text(it).as_deref() == Some(text))
                .unwrap()
        };
        let moves = MOVES.split(' ').map(token);
        let end = vocabulary.end(GameEnd::WhiteWins);
        GameTokens {
            tokens: std::iter::once(vocabulary.start())
                .chain(moves)
                .chain([end])
                .collect(),
            ratings: [1500, 1600],
            result: Some(Wdl::Win),
        }
    }

    #[test]
    fn games_leave_their_course_and_stay_legal() {
        let (vocabulary, whole) = (Vocabulary::Uci, game());
        let mut courses = std::collections::HashSet::new();
        for seed in 0..200 {
            let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
            let changed = go_on(&whole, &vocabulary, random);
            assert!(changed.tokens.len() <= whole.tokens.len());
            let mut played = Game::default();
            for &token in &changed.tokens[1..] {
                match vocabulary.read(token).unwrap() {
                    Token::Move(_) => {
                        let mv = vocabulary.legal_move(played.position(), token).unwrap();
                        played.play(mv);
                    }
                    Token::End(end) => {
                        assert_eq!(end.is_mate(), played.position().is_checkmate());
                        assert!(played.position().is_game_over());
                    }
                    other => panic!("{other:?}"),
                }
            }
            let shared = changed.tokens.iter().zip(&whole.tokens);
            courses.insert(shared.take_while(|(one, other)| one == other).count());
        }
        // Each ply of the game, from the first to the last, can be the start of the random moves.
        assert_eq!(courses.len(), 10, "{courses:?}");
    }
}
