//! Uses the policies and values of networks as targets for games. This is distillation (Hinton et
//! al. 2015), computed once per position before training. A whole policy contains more information
//! about a position than the single move that was played there.
//!
//! Networks that imitate people of one rating each, such as Maia (McIlroy-Young et al. 2020),
//! together teach how people of every rating play. Each position is evaluated by only one of them,
//! sampled with a Gaussian of the distance between its rating and the mover's. Cross entropy is
//! linear in its target, so a student learns the ensemble's mean at the cost of one evaluation, and
//! the ensemble predicts people better than its members do.

use super::PolicyPlayer;
use crate::backend::{BackendError, Batch, Evaluations};
use crate::chess::{Game, RATING_SPREAD, Ratings, fen, weights_near};
use crate::data::legal::Legal;
use crate::data::record::{Node, Record, SearchResult};
use crate::data::replay::{ReplayError, main_line};
use crate::encode::policy_index;
use crate::openings::generator;
use crate::softmax::softmax;
use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;
use shakmaty::{Move, Position};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Number of games whose positions are evaluated together.
const GAMES: usize = 64;
/// Number of positions per evaluation.
const BATCH: usize = 256;

/// Why targets cannot be computed for games.
#[derive(Debug, thiserror::Error)]
pub enum TeachingError {
    /// A teacher failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A record does not describe a game.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Settings for networks that supply targets.
#[derive(Debug)]
pub struct Teaching {
    /// The networks, at least one. If there are several, each of them has a rating.
    teachers: Vec<PolicyPlayer>,
    /// Share of the policy target given to the move played, 0 to 1. The rest goes to the teacher's
    /// policy.
    pub played: f32,
    /// Standard deviation of the Gaussian over ratings with which a position's teacher is sampled;
    /// 0 selects the nearest. A mover rated outside the teachers' range is treated like the nearest
    /// end of that range.
    pub spread: u32,
    /// If set, both players of each game get the same rating, sampled from this range, so that all
    /// ratings are taught equally often. The game's result is dropped, because it is not that of
    /// players with such ratings.
    pub ratings: Option<RangeInclusive<u16>>,
    /// Range of the random number of plies removed from the start of each game, which thins out
    /// openings. Games that are too short for this lose none.
    pub cut: RangeInclusive<usize>,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Teaching {
    /// Takes the targets only from these networks, and uses whole games.
    pub fn new(mut teachers: Vec<PolicyPlayer>) -> Teaching {
        teachers.sort_by_key(|teacher| teacher.rating);
        Teaching {
            teachers,
            played: 0.0,
            spread: RATING_SPREAD,
            ratings: None,
            cut: 0..=0,
            seed: 0,
        }
    }

    /// Returns the records, in order, with the teachers' targets on their main lines; their
    /// variations and scores are dropped. `first` is the index of the first record in the corpus,
    /// which the random choices depend on. If there are several teachers, records that lack a
    /// rating are left out.
    ///
    /// # Errors
    /// [`TeachingError`] if a teacher fails or a record does not describe a game.
    pub fn teach(&self, records: &[Record], first: u64) -> Result<Vec<Record>, TeachingError> {
        let chunks: Vec<Vec<Record>> = records
            .par_chunks(GAMES)
            .enumerate()
            .map(|(chunk, records)| self.teach_some(records, first + (chunk * GAMES) as u64))
            .collect::<Result<_, _>>()?;
        Ok(chunks.concat())
    }

    fn teach_some(&self, records: &[Record], first: u64) -> Result<Vec<Record>, TeachingError> {
        let mut lessons: Vec<Lesson> = self.teachers.iter().map(|_| Lesson::default()).collect();
        let mut taught = Vec::new();
        for (number, record) in (first..).zip(records) {
            let mut random = generator(self.seed, number);
            let record = &self.rated(record, &mut random);
            let ratings = record.ratings;
            if self.teachers.len() > 1 && (ratings.white.is_none() || ratings.black.is_none()) {
                continue;
            }
            let mut game = main_line(record)?;
            let played: Vec<Move> = game.plies().iter().filter_map(|ply| ply.played).collect();
            let cut = random.random_range(self.cut.clone());
            let cut = if cut < played.len() { cut } else { 0 };
            taught.push(shortened(record, &game, cut));
            game.truncate(cut + 1);
            for (ply, mv) in played.into_iter().skip(cut).enumerate() {
                let turn = game.position().turn();
                let rating = turn.fold_wb(ratings.white, ratings.black);
                let teacher = self.draw(rating, &mut random);
                let lesson = &mut lessons[teacher];
                lesson.ask(&self.teachers[teacher], &game, [taught.len() - 1, ply], mv)?;
                if lesson.questions.len() >= BATCH {
                    self.hear(teacher, lesson, &mut taught)?;
                }
                game.play(mv);
            }
        }
        for (teacher, lesson) in lessons.iter_mut().enumerate() {
            self.hear(teacher, lesson, &mut taught)?;
        }
        Ok(taught)
    }

    /// Returns the record, with sampled ratings if configured.
    fn rated<'a>(&self, record: &'a Record, random: &mut Xoshiro256PlusPlus) -> Cow<'a, Record> {
        let Some(range) = &self.ratings else {
            return Cow::Borrowed(record);
        };
        let rating = Some(random.random_range(range.clone()));
        Cow::Owned(Record {
            ratings: Ratings {
                white: rating,
                black: rating,
            },
            result: None,
            ..record.clone()
        })
    }

    /// Samples a teacher for this rating and returns its index.
    fn draw(&self, rating: Option<u16>, random: &mut Xoshiro256PlusPlus) -> usize {
        let Some(rating) = rating else { return 0 };
        let ratings = self.teachers.iter().filter_map(|teacher| teacher.rating);
        let weights = weights_near(&ratings.collect::<Vec<_>>(), rating, self.spread);
        // Without ratings there is only one teacher, and no weights.
        WeightedIndex::new(weights).map_or(0, |weights| weights.sample(random))
    }

    /// Evaluates a lesson's positions, writes the targets into the games, and empties the lesson.
    fn hear(
        &self,
        teacher: usize,
        lesson: &mut Lesson,
        taught: &mut [Record],
    ) -> Result<(), BackendError> {
        if lesson.questions.is_empty() {
            return Ok(());
        }
        let teacher = &self.teachers[teacher];
        teacher
            .backend
            .evaluate(&lesson.batch, &mut lesson.evaluations)?;
        for (index, question) in lesson.questions.drain(..).enumerate() {
            let mut policy = lesson.evaluations.logits(index).to_vec();
            softmax(&mut policy, teacher.temperature);
            let [win, _, loss] = lesson.evaluations.value(index).wdl();
            let [game, ply] = question.place;
            taught[game].searches[ply] = question.answer(&policy, self.played, win - loss);
        }
        lesson.batch.clear();
        Ok(())
    }
}

/// The positions that one teacher evaluates next.
#[derive(Default)]
struct Lesson {
    batch: Batch,
    questions: Vec<Question>,
    evaluations: Evaluations,
}

impl Lesson {
    /// Adds a game's last position, in which `played` was played.
    fn ask(
        &mut self,
        teacher: &PolicyPlayer,
        game: &Game,
        place: [usize; 2],
        played: Move,
    ) -> Result<(), BackendError> {
        let position = game.position();
        let moves = position.legal_moves();
        self.batch
            .push(game, &moves, &teacher.backend.properties().encoder)?;
        let legal = Legal::of(&moves, position.turn());
        let ordinal = |mv: Move| legal.ordinal(policy_index(mv, position.turn())) as u8;
        self.questions.push(Question {
            place,
            played: ordinal(played),
            ordinals: moves.iter().map(|&mv| ordinal(mv)).collect(),
        });
        Ok(())
    }
}

/// A position that a teacher is to evaluate.
struct Question {
    /// The index of the game among those taught together, and the ply of the position in it.
    place: [usize; 2],
    /// The ordinal of the move played there.
    played: u8,
    /// The ordinals of the legal moves, in the order of the teacher's policy.
    ordinals: Vec<u8>,
}

impl Question {
    /// Returns the targets: the teacher's policy, in which the move played first receives the share
    /// `played`, and the teacher's value q.
    fn answer(&self, policy: &[f32], played: f32, q: f32) -> SearchResult {
        let share = |(&ordinal, &probability): (&u8, &f32)| {
            let own = if ordinal == self.played { played } else { 0.0 };
            (ordinal, own + (1.0 - played) * probability)
        };
        let mut shares: Vec<(u8, f32)> = self.ordinals.iter().zip(policy).map(share).collect();
        shares.sort_unstable_by_key(|&(ordinal, _)| ordinal);
        SearchResult::new(shares, q, q)
    }
}

/// Returns the main line of a record from ply `cut` of its `game` onwards, with room for the
/// targets.
fn shortened(record: &Record, game: &Game, cut: usize) -> Record {
    let nodes: Vec<Node> = record
        .main_line()
        .skip(cut)
        .map(|&node| Node { eval: None, ..node })
        .collect();
    Record {
        fen: match cut {
            0 => record.fen.clone(),
            _ => Some(fen(&game.plies()[cut].position)),
        },
        searches: vec![SearchResult::default(); nodes.len()],
        nodes,
        ..record.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use crate::data::curve::Curve;
    use crate::data::label::TargetRules;
    use crate::data::pgn::parse_game;
    use crate::data::replay::{VariationWeight, replay};
    use crate::data::sample::{Policy, Sample};
    use crate::encode::{Encoder, InputFormat};
    use std::sync::Arc;

    const GAME: &[u8] = b"1. e4 e5 2. Nf3 Nc6 3. Bb5 (3. Bc4 Bc5) 3... a6 4. Bxc6 dxc6 5. O-O 1-0";

    fn teacher(seed: u64, rating: Option<u16>) -> PolicyPlayer {
        PolicyPlayer {
            name: seed.to_string(),
            hash: String::new(),
            backend: Arc::new(Random::new(seed)),
            temperature: 1.5,
            rating,
        }
    }

    fn game(white: u16, black: u16) -> Record {
        Record {
            ratings: Ratings {
                white: Some(white),
                black: Some(black),
            },
            ..parse_game(GAME).unwrap()
        }
    }

    fn samples(record: &Record) -> Vec<Sample> {
        let rules = TargetRules {
            evals: None,
            played: true,
            noise: false,
            curve: Curve::Lc0,
            alternatives: None,
        };
        let weight = VariationWeight {
            first: 1.0,
            decay: 1.0,
        };
        let mut samples = Vec::new();
        let format = InputFormat::Classical;
        let emit = |it| samples.push(it);
        replay(format, record, &rules, weight, || true, emit).unwrap();
        samples
    }

    /// Returns a teacher's outputs for every position of a game except the last: the policy by
    /// policy indices, and q.
    fn said(teacher: &PolicyPlayer, record: &Record) -> Vec<(Vec<(u16, f32)>, f32)> {
        let whole = main_line(record).unwrap();
        let mut said = Vec::new();
        for plies in 1..whole.plies().len() {
            let mut game = whole.clone();
            game.truncate(plies);
            let moves = game.position().legal_moves();
            let (mut batch, mut evaluations) = (Batch::default(), Evaluations::default());
            batch.push(&game, &moves, &Encoder::Nothing).unwrap();
            teacher.backend.evaluate(&batch, &mut evaluations).unwrap();
            let mut policy = evaluations.logits(0).to_vec();
            softmax(&mut policy, teacher.temperature);
            let mut policy: Vec<_> = batch.moves(0).iter().copied().zip(policy).collect();
            policy.sort_unstable_by_key(|&(index, _)| index);
            said.push((policy, evaluations.value(0).q));
        }
        said
    }

    #[test]
    fn targets_are_what_the_teacher_says_with_a_share_of_the_move_played() {
        let mut teaching = Teaching::new(vec![teacher(1, None)]);
        (teaching.played, teaching.cut) = (0.25, 3..=3);
        let record = game(1500, 1600);
        let taught = teaching.teach(std::slice::from_ref(&record), 0).unwrap();
        let samples = samples(&taught[0]);
        let said = said(&teaching.teachers[0], &record);
        assert_eq!(samples.len(), 9 - 3);
        assert_eq!(taught[0].ratings, record.ratings);
        let line = main_line(&record).unwrap();
        for (ply, (sample, (policy, q))) in samples.iter().zip(&said[3..]).enumerate() {
            let Policy::Distribution(found) = &sample.policy else {
                panic!("ply {ply} has no distribution");
            };
            let before = &line.plies()[ply + 3].position;
            let mv = line.plies()[ply + 4].played.unwrap();
            let played = policy_index(mv, before.turn());
            for ((index, share), (expected, teacher)) in found.iter().zip(policy) {
                let own = if *expected == played { 0.25 } else { 0.0 };
                assert_eq!(index, expected);
                assert!((share - (own + 0.75 * teacher)).abs() < 1e-3, "ply {ply}");
            }
            assert!((sample.q.unwrap() - q).abs() < 1e-3);
            assert!(sample.result.is_some() && sample.moves_left.is_some());
        }
    }

    #[test]
    fn a_position_asks_teachers_near_its_movers_rating() {
        let ratings = [1100, 1500, 1900];
        let teachers = (1..).zip(ratings);
        let mut teaching =
            Teaching::new(teachers.map(|(seed, it)| teacher(seed, Some(it))).collect());
        let mut random = generator(3, 0);
        teaching.spread = 400;
        let mut counts = [0_u32; 3];
        for _ in 0..1000 {
            counts[teaching.draw(Some(1100), &mut random)] += 1;
        }
        // The weights are 1, exp(−1/2) and exp(−2).
        let [first, second, third] = counts;
        assert!((530..620).contains(&first), "{first}");
        assert!((300..400).contains(&second), "{second}");
        assert!((45..115).contains(&third), "{third}");
        teaching.spread = 0;
        // The first teacher answers for White, and the last one for Black.
        let record = game(1000, 2000);
        let taught = teaching.teach(std::slice::from_ref(&record), 0).unwrap();
        let said = [0, 2].map(|place| said(&teaching.teachers[place], &record));
        for (ply, sample) in samples(&taught[0]).iter().enumerate() {
            let q = said[ply % 2][ply].1;
            assert!((sample.q.unwrap() - q).abs() < 1e-3, "ply {ply}");
        }
    }

    #[test]
    fn ratings_can_be_drawn_evenly() {
        let mut teaching = Teaching::new(vec![teacher(1, Some(1100)), teacher(2, Some(1900))]);
        teaching.ratings = Some(1000..=2199);
        let mut unrated = game(1500, 1500);
        unrated.ratings = Ratings::default();
        let records = vec![unrated; 600];
        let taught = teaching.teach(&records, 0).unwrap();
        assert_eq!(taught.len(), records.len());
        let mut bands = [0_u32; 6];
        for record in &taught {
            assert_eq!(record.ratings.white, record.ratings.black);
            assert_eq!(record.result, None);
            bands[usize::from(record.ratings.white.unwrap() - 1000) / 200] += 1;
        }
        assert!(bands.iter().all(|&it| (65..135).contains(&it)), "{bands:?}");
        // The teachers answer for the sampled ratings.
        teaching.spread = 0;
        teaching.ratings = Some(1800..=1900);
        let taught = teaching.teach(&records[..1], 0).unwrap();
        let said = said(&teaching.teachers[1], &taught[0]);
        for (sample, (_, q)) in samples(&taught[0]).iter().zip(&said) {
            assert!((sample.q.unwrap() - q).abs() < 1e-3);
            assert!(sample.result.is_none());
        }
    }

    #[test]
    fn games_without_ratings_have_no_teacher_among_several() {
        let mut unrated = game(1500, 1500);
        unrated.ratings.black = None;
        let records = [unrated, game(1500, 1500)];
        let several = Teaching::new(vec![teacher(1, Some(1100)), teacher(2, Some(1900))]);
        assert_eq!(several.teach(&records, 0).unwrap().len(), 1);
        let one = Teaching::new(vec![teacher(1, None)]);
        assert_eq!(one.teach(&records, 0).unwrap().len(), 2);
        // More games than fit in one chunk are returned in their original order.
        let many: Vec<Record> = (0..150).map(|number| game(1500, 1000 + number)).collect();
        let taught = one.teach(&many, 0).unwrap();
        let ratings = |records: &[Record]| -> Vec<Ratings> {
            records.iter().map(|record| record.ratings).collect()
        };
        assert_eq!(ratings(&taught), ratings(&many));
    }
}
