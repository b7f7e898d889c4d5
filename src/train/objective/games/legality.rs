//! How often the move that a network likes best is legal, though nobody told it the rules.

use super::{GameSamples, Games};
use crate::chess::Game;
use crate::encode::{Token, Vocabulary};
use crate::network::gpt::Next;
use crate::train::distributed::{GroupError, World};
use crate::train::objective::Diagnostics;
use serde_json::{Map, Value, json};
use tch::{Device, Kind, Tensor};

/// Plies of a row of the table.
const PLIES: usize = 20;
/// Rows; the last has all later plies too.
const ROWS: usize = 10;

/// Choices and legal ones by ply.
#[derive(Debug)]
pub(in crate::train) struct Legality {
    /// f32 [rows, 2]: choices, legal ones.
    sums: Tensor,
}

impl Diagnostics<Games> for Legality {
    fn new(device: Device) -> Legality {
        Legality {
            sums: Tensor::zeros([ROWS as i64, 2], (Kind::Float, device)),
        }
    }

    fn add(&mut self, outputs: &Next, samples: &GameSamples) {
        let rows = |tensor: &Tensor| -> Vec<Vec<i64>> {
            Vec::try_from(tensor.to_device(Device::Cpu)).expect("rows of tokens")
        };
        let best = rows(&outputs.tokens.argmax(-1, false));
        let mut counts = [[0f32; 2]; ROWS];
        for (best, next) in best.iter().zip(rows(&samples.next)) {
            count(&samples.vocabulary, best, &next, &mut counts);
        }
        let counts = Tensor::from_slice(counts.as_flattened()).view([-1, 2]);
        self.sums += counts.to_device(self.sums.device());
    }

    /// As `legality`: the share of all choices that were legal and, as `by_ply`, of each
    /// twenty plies; `null` where there were none.
    fn finish(&self, world: &World) -> Result<Map<String, Value>, GroupError> {
        world.sum(&self.sums, "summing what was legal")?;
        let sums = self.sums.to_device(Device::Cpu).reshape([-1]);
        let sums: Vec<f32> = Vec::try_from(sums).expect("a vector of floats");
        let share = |choices: f32, legal: f32| match choices > 0.0 {
            true => json!(legal / choices),
            false => Value::Null,
        };
        let rows: Vec<[f32; 2]> = sums.chunks(2).map(|row| [row[0], row[1]]).collect();
        let total = |column: usize| rows.iter().map(|row| row[column]).sum();
        let by_ply: Vec<Value> = rows.iter().map(|row| share(row[0], row[1])).collect();
        let legality = json!({ "all": share(total(0), total(1)), "by_ply": by_ply });
        Ok(Map::from_iter([("legality".to_owned(), legality)]))
    }
}

/// Counts the choices `best` after each token of a game that went on by `next`, as long
/// as it did so by moves.
fn count(vocabulary: &Vocabulary, best: &[i64], next: &[i64], counts: &mut [[f32; 2]; ROWS]) {
    let mut game = Game::default();
    for (ply, (&best, &next)) in best.iter().zip(next).enumerate() {
        let token = |token: i64| u16::try_from(token).ok();
        let Some(played) =
            token(next).filter(|&it| matches!(vocabulary.read(it), Some(Token::Move(_))))
        else {
            break;
        };
        let position = game.position();
        let is_legal = token(best).is_some_and(|it| vocabulary.legal_move(position, it).is_some());
        let row = &mut counts[(ply / PLIES).min(ROWS - 1)];
        row[0] += 1.0;
        row[1] += f32::from(u8::from(is_legal));
        match vocabulary.legal_move(position, played) {
            Some(mv) => game.play(mv),
            None => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_judged_by_the_game_that_was_played() {
        let vocabulary = Vocabulary::Uci;
        let token = |mv: &str| {
            let found = (0..1968).find(|&it| vocabulary.text(it).as_deref() == Some(mv));
            i64::from(found.unwrap())
        };
        let end = i64::from(vocabulary.start()) + 1;
        let next = [token("e2e4"), token("e7e5"), token("g1f3"), end, -100];
        let best = [token("d2d4"), token("e2e4"), token("e1e2"), end, 0].map(|it| it);
        let mut counts = [[0f32; 2]; ROWS];
        count(&vocabulary, &best, &next, &mut counts);
        // Black cannot move White's pawn; ends are no moves.
        assert_eq!(counts[0], [3.0, 2.0]);
        let ended = [end; 5];
        count(&vocabulary, &ended, &next, &mut counts);
        assert_eq!(counts[0], [6.0, 2.0]);
        assert_eq!(counts[1], [0.0, 0.0]);
    }
}
