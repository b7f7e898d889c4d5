//! Features of a move that follow from the rules alone: mates, exchanges, and the material after a short search
//! without a network.
//!
//! | module | purpose |
//! |---|---|
//! | [`material`] | the worth of pieces |
//! | [`mod@exchange`] | what captures on one square win |
//! | [`mates`] | mates in one |
//! | [`quiescence`] | the material after captures |
//! | [`correction`] | a small network that corrects a policy by these features and the player's rating |

pub mod correction;
pub mod exchange;
pub mod material;
pub mod mates;
pub mod quiescence;

use crate::chess::after;
use exchange::{exchange, largest_two};
use material::{balance, gain};
use quiescence::material_after;
use shakmaty::{Chess, Move, Position};

/// The loss, in centipawns, from which a move leaves a piece to be taken for nothing: a little less
/// than a knight.
const PIECE: i32 = 300;
/// Balances of material are cut off at this many centipawns, …
const MOST: i32 = 900;
/// … and are inputs of a network in this unit.
const UNIT: f32 = 300.0;

/// The features of a move. Material is in centipawns; see [`material::value`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Whether the move gives mate.
    pub mates: bool,
    /// Whether the move gives check.
    pub checks: bool,
    /// Whether the move captures.
    pub captures: bool,
    /// Whether the opponent can then give mate at once.
    pub allows_mate: bool,
    /// The material that the move gains at once.
    pub gain: i32,
    /// The largest and the second largest [`exchange`](exchange::exchange) that the opponent then
    /// wins on any square.
    pub hanging: [i32; 2],
    /// The exchange that the opponent then wins on the move's own square.
    pub landing: i32,
    /// The largest and the second largest exchange that the side would then win if the opponent
    /// passed.
    pub threats: [i32; 2],
    /// The change of material after captures by both sides.
    pub quiet: i32,
    /// The change of material after any reply of the opponent and captures by both sides.
    pub replied: i32,
}

impl Features {
    /// Number of [inputs](Features::inputs).
    pub const COUNT: usize = 15;

    /// Returns whether the move leaves a piece to be taken for nothing: the opponent then wins at
    /// least about a knight on one square, beyond what the move itself gains.
    pub fn leaves_piece(&self) -> bool {
        !self.mates && self.hanging[0] - self.gain >= PIECE
    }

    /// Returns the features as inputs of a network, of the order of 1.
    pub fn inputs(&self) -> [f32; Features::COUNT] {
        let flag = |flag: bool| f32::from(u8::from(flag));
        let material = |centipawns: i32| centipawns.clamp(-MOST, MOST) as f32 / UNIT;
        let is_safe = flag(self.hanging[0] == 0);
        let [threat, second_threat] = self.threats.map(material);
        [
            flag(self.mates),
            flag(self.checks),
            flag(self.captures),
            flag(self.allows_mate),
            flag(self.leaves_piece()),
            material(self.gain),
            material(self.hanging[0]),
            material(self.hanging[1]),
            material(self.landing),
            threat,
            second_threat,
            threat * is_safe,
            second_threat * is_safe,
            material(self.quiet),
            material(self.replied),
        ]
    }
}

/// Returns the features of each of these legal moves.
pub fn features(position: &Chess, moves: &[Move]) -> Vec<Features> {
    let present = balance(position);
    let of_move = |&mv: &Move| {
        let after = after(position, mv);
        // Changes beyond the limit are cut off, so bounds there lose nothing.
        let change = |depth| {
            let (low, high) = (-present - MOST, -present + MOST);
            (-material_after(&after, depth, low, high) - present).clamp(-MOST, MOST)
        };
        Features {
            quiet: change(0),
            replied: change(1),
            ..without_search(position, mv, &after)
        }
    };
    moves.iter().map(of_move).collect()
}

/// Returns the same features, except that [`Features::quiet`] and [`Features::replied`] are 0, at a
/// tenth of the cost.
pub fn features_without_search(position: &Chess, moves: &[Move]) -> Vec<Features> {
    let moves = moves.iter();
    moves
        .map(|&mv| without_search(position, mv, &after(position, mv)))
        .collect()
}

fn without_search(position: &Chess, mv: Move, after: &Chess) -> Features {
    let (own, opponent) = (position.turn(), after.turn());
    let (board, checks) = (after.board(), after.is_check());
    Features {
        mates: checks && after.legal_moves().is_empty(),
        checks,
        captures: mv.is_capture(),
        allows_mate: mates::can_mate(after),
        gain: gain(mv),
        hanging: largest_two(board, opponent),
        landing: exchange(board, mv.to(), opponent),
        threats: largest_two(board, own),
        quiet: 0,
        replied: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::chess::tests::game_of_choices;
    use proptest::prelude::*;
    use shakmaty::CastlingMode;

    fn of(fen: &str, mv: &str) -> Features {
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let mv = game.parse_move(mv).unwrap();
        features(game.position(), &[mv])[0]
    }

    #[test]
    fn features_tell_what_a_move_does() {
        let scholar = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 3 3";
        let blunder = of(scholar, "g8f6");
        assert!(blunder.allows_mate && !blunder.checks);
        assert!(!of(scholar, "g7g6").allows_mate);
        let mate = of(
            "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4",
            "h5f7",
        );
        assert!(mate.mates && mate.checks && mate.captures && !mate.leaves_piece());
        assert_eq!(mate.gain, 100);
        // The pawn uncovers the queens, and White takes first.
        let queen = of(
            "1r4k1/3b2pp/4p3/Qpq1Pp2/2p2P2/2P1PB2/6PP/4R1K1 b - - 2 26",
            "b5b4",
        );
        assert!(queen.leaves_piece());
        assert_eq!((queen.hanging, queen.threats), ([950, 0], [950, 0]));
        assert_eq!((queen.quiet, queen.replied), (-MOST, -MOST));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn searches_change_no_other_feature(
            choices in prop::collection::vec(any::<u32>(), 0..60),
        ) {
            let game = game_of_choices(&choices);
            let moves = game.position().legal_moves();
            let cheap = features_without_search(game.position(), &moves);
            for (of, cheap) in features(game.position(), &moves).into_iter().zip(cheap) {
                prop_assert_eq!(Features { quiet: 0, replied: 0, ..of }, cheap);
                prop_assert!(of.inputs().iter().all(|input| (-3.0..=3.0).contains(input)));
            }
        }
    }
}
