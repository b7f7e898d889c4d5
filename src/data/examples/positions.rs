//! Examples that consist of one position with its targets.

use super::{Columns, Examples, of_games};
use crate::data::label::TargetRules;
use crate::data::legal::Legal;
use crate::data::record::Record;
use crate::data::replay::{ReplayError, VariationWeight, replay};
use crate::data::sample::{Policy, Sample, Wdl};
use crate::data::v6::{Chunk, V6Error};
use crate::encode::{Input, InputFormat};
use std::ops::Range;

/// Positions in a network's input format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PositionExamples {
    /// The input format. Moves are transformed in the same way as the boards.
    pub format: InputFormat,
    /// The weight of positions in variations.
    pub variations: VariationWeight,
}

impl Examples for PositionExamples {
    type Example = Sample;
    type Columns = PositionColumns;

    fn expected(&self, _games: f64, positions: f64) -> f64 {
        positions
    }

    fn of_record(
        &self,
        record: &Record,
        rules: &TargetRules,
        keep: impl FnMut() -> bool,
        emit: impl FnMut(Sample),
    ) -> Result<(), ReplayError> {
        replay(self.format, record, rules, self.variations, keep, emit)
    }

    /// In the classical format, converts the chunk's records directly to samples; in other formats,
    /// replays the chunk's games.
    fn of_chunk<X>(
        &self,
        chunk: &Chunk,
        keep: impl FnMut() -> bool,
        emit: impl FnMut(Sample),
        bad: impl FnMut(V6Error) -> Result<(), X>,
    ) -> Result<(), X> {
        match self.format.is_classical() {
            true => chunk.samples(keep, emit, bad),
            false => of_games(self, chunk, keep, emit, bad),
        }
    }
}

/// Policy targets as a sparse matrix [B, 1858] in coordinate format: entry `i` is `probability[i]`
/// at (`row[i]`, `index[i]`). The entries are in order of rows. A row without entries has no policy
/// target, and a row with a single entry is one-hot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyTargets {
    /// The row, which is the sample's index in the batch.
    pub row: Vec<i64>,
    /// The policy index.
    pub index: Vec<i64>,
    /// The target probability.
    pub probability: Vec<f32>,
}

/// A batch of B positions in columns, all from the perspective of the side to move.
#[derive(Clone, Debug, Default)]
pub struct PositionColumns {
    /// The positions with the players' ratings. [`PositionColumns::input_words`] returns them as
    /// i64 [B, WIDTH].
    pub inputs: Vec<Input>,
    /// The legal moves. [`PositionColumns::legal_words`] returns them as i64 [B, 30].
    pub legal: Vec<Legal>,
    /// The policy targets.
    pub policy: PolicyTargets,
    /// The game's result: 0 for a win, 1 for a draw, 2 for a loss, −1 without a target.
    pub result: Vec<i64>,
    /// The value W − L in −1…1; NaN without a target.
    pub q: Vec<f32>,
    /// The short-term value in −1…1; NaN without a target.
    pub short_term: Vec<f32>,
    /// The number of plies to the end of the game; NaN without a target.
    pub moves_left: Vec<f32>,
    /// The weight of each sample.
    pub weight: Vec<f32>,
}

impl PositionColumns {
    /// Returns the words of the inputs, row by row.
    pub fn input_words(&self) -> &[i64] {
        bytemuck::cast_slice(&self.inputs)
    }

    /// Returns the words of the sets of legal moves, row by row. Index `i` is bit `i % 64` of a
    /// row's word `i / 64`, counting from the lowest bit.
    pub fn legal_words(&self) -> &[i64] {
        bytemuck::cast_slice(&self.legal)
    }
}

impl Columns for PositionColumns {
    type Example = Sample;

    fn push(&mut self, sample: &Sample) {
        let row = self.inputs.len() as i64;
        let mut target = |index: u16, probability| {
            self.policy.row.push(row);
            self.policy.index.push(index.into());
            self.policy.probability.push(probability);
        };
        match &sample.policy {
            Policy::Unknown => {}
            Policy::Move(index) => target(*index, 1.0),
            Policy::Distribution(moves) => {
                for &(index, probability) in moves {
                    target(index, probability);
                }
            }
        }
        self.inputs.push(sample.input);
        self.legal.push(sample.legal);
        self.result.push(match sample.result {
            Some(Wdl::Win) => 0,
            Some(Wdl::Draw) => 1,
            Some(Wdl::Loss) => 2,
            None => -1,
        });
        self.q.push(sample.q.unwrap_or(f32::NAN));
        self.short_term.push(sample.short_term.unwrap_or(f32::NAN));
        self.moves_left.push(sample.moves_left.unwrap_or(f32::NAN));
        self.weight.push(sample.weight);
    }

    fn len(&self) -> usize {
        self.inputs.len()
    }

    fn part(&self, places: Range<usize>) -> PositionColumns {
        let rows = &self.policy.row;
        let entry = |place: usize| rows.partition_point(|&row| row < place as i64);
        let entries = entry(places.start)..entry(places.end);
        let own_row = |row: &i64| row - places.start as i64;
        PositionColumns {
            inputs: self.inputs[places.clone()].to_vec(),
            legal: self.legal[places.clone()].to_vec(),
            policy: PolicyTargets {
                row: rows[entries.clone()].iter().map(own_row).collect(),
                index: self.policy.index[entries.clone()].to_vec(),
                probability: self.policy.probability[entries].to_vec(),
            },
            result: self.result[places.clone()].to_vec(),
            q: self.q[places.clone()].to_vec(),
            short_term: self.short_term[places.clone()].to_vec(),
            moves_left: self.moves_left[places.clone()].to_vec(),
            weight: self.weight[places].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::label::EvalRefersTo;
    use crate::data::pgn::parse_game;
    use crate::data::replay::main_line;
    use crate::data::{Curve, v6};
    use shakmaty::Position;
    use std::convert::Infallible;

    /// A game with an en-passant capture, in which first all castling rights and then all pawns
    /// disappear, so that every transform of canonical boards occurs.
    const GAME: &str = "[Result \"1/2-1/2\"]\n[FEN \"4k3/3p4/8/4P3/8/8/8/R3K2R w KQ - 0 1\"]\n\n\
        1. Rd1 d5 2. exd6 Kf8 3. Kf2 Kg7 4. d7 Kf6 5. d8=N Ke5 6. Rh3 Kf4 7. Ra3 Ke5 8. Ra8 Kf5 \
        9. Ke3 Kg6 10. Rc1 Kh7 11. Kd4 Kg7 12. Kc5 Kf8 1/2-1/2";

    const RULES: TargetRules = TargetRules {
        evals: Some(EvalRefersTo::MovePlayed),
        played: true,
        noise: false,
        curve: Curve::Lichess,
        alternatives: None,
    };

    fn positions(format: InputFormat) -> PositionExamples {
        PositionExamples {
            format,
            variations: VariationWeight {
                first: 1.0,
                decay: 1.0,
            },
        }
    }

    fn of_record(format: InputFormat, record: &Record) -> Vec<Sample> {
        let mut samples = Vec::new();
        let emit = |sample| samples.push(sample);
        let played = positions(format).of_record(record, &RULES, || true, emit);
        played.unwrap();
        samples
    }

    #[test]
    fn every_format_has_its_own_rows_and_moves_turned_like_them() {
        let record = parse_game(GAME.as_bytes()).unwrap();
        let mut turned = 0;
        for format in InputFormat::ALL {
            let mut game = main_line(&record).unwrap();
            let samples = of_record(format, &record);
            assert_eq!(samples.len(), record.nodes.len());
            for sample in samples.iter().rev() {
                game.undo();
                let (input, transform) = format.encode(&game);
                turned += usize::from(!transform.is_identity());
                assert_eq!(sample.input, input, "{format:?}");
                // The row encodes a position with these legal moves.
                let seen = input.position().unwrap();
                let legal = Legal::of(&seen.legal_moves(), seen.turn());
                assert_eq!(sample.legal, legal, "{format:?}");
                let Policy::Move(target) = sample.policy else {
                    panic!("a target each");
                };
                assert!(legal.contains(target), "{format:?}");
            }
        }
        assert!(turned > 30, "{turned}");
    }

    #[test]
    fn chunks_give_the_rows_of_every_format() {
        let record = parse_game(GAME.as_bytes()).unwrap();
        let mut game = main_line(&record).unwrap();
        let mut searched: Vec<v6::Searched> = Vec::new();
        for sample in of_record(InputFormat::Classical, &record).into_iter().rev() {
            game.undo();
            let Policy::Move(target) = sample.policy else {
                panic!("a target each");
            };
            searched.push(v6::Searched {
                input: sample.input,
                policy: sample
                    .legal
                    .iter()
                    .map(|index| (index, f32::from(u8::from(index == target))))
                    .collect(),
                root: v6::Expectation::default(),
                best: v6::Expectation::default(),
                played: v6::Expectation::default(),
                network: None,
                visits: 1,
                best_index: target,
                played_index: target,
                is_proven: false,
                policy_divergence: 0.0,
            });
        }
        searched.reverse();
        let ending = v6::Ending {
            result: Some(Wdl::Draw),
            ..v6::Ending::default()
        };
        let bytes: Vec<u8> = v6::game_records(&searched, &ending)
            .iter()
            .flat_map(|record| bytemuck::bytes_of(record).to_vec())
            .collect();
        let chunk = Chunk::new("game".into(), &bytes);
        for format in InputFormat::ALL {
            let mut found = Vec::new();
            let read = positions(format).of_chunk(
                &chunk,
                || true,
                |sample: Sample| found.push(sample),
                |error| -> Result<(), Infallible> { panic!("{error}") },
            );
            let Ok(()) = read;
            let expected = of_record(format, &record);
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.input, expected.input, "{format:?}");
                assert_eq!(found.legal, expected.legal, "{format:?}");
            }
        }
    }
}
