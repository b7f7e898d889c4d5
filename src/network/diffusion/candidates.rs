//! Candidate search: the network is given first moves and predicts their consequences.
//!
//! The first evaluation has a fully masked future and returns a policy and a value. Each further
//! evaluation takes a copy of the position in which one of the likeliest legal moves is given and
//! the rest of the future is masked. Each board of the copy then yields an estimate of the move's
//! value, converted to the view of the present mover. The boards are the present one, from which
//! the move is played, and the future ones. The value of the move is the mean of these estimates.
//! The values improve the policy as in Gumbel MuZero (Danihelka et al. 2022): a candidate's logit
//! changes in proportion to the difference between the candidate's value and the position's value.
//!
//! The network thus looks ahead without any rules except for the list of legal moves.

use super::decode::{Revealed, Unfolding};
use super::{Diffusion, of_first_mover};
use crate::backend::{Decoding, PredictedFuture};
use crate::encode::{Input, POLICY_SIZE, WIDTH, policy_index};
use crate::network::architecture::Evaluator;
use crate::network::outputs::{Output, OutputSet, Outputs};
use crate::network::parameters::Weights;
use crate::torch::floats;
use shakmaty::Position;
use tch::{Device, Kind, Tensor};

/// A first move, with the index of the position in which it is played.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    position: usize,
    played: u16,
}

impl Diffusion {
    /// Decodes like [`Diffusion::decode`], but with one evaluation of the fully masked future and
    /// one evaluation per candidate.
    pub(super) fn weigh(
        &self,
        weights: &Weights,
        rows: &Tensor,
        decoding: Decoding,
        wanted: OutputSet,
    ) -> (Outputs, Vec<PredictedFuture>) {
        let once = Decoding {
            steps: 1,
            ..decoding
        };
        let all: OutputSet = self.interface().outputs.into_iter().collect();
        let mut unaided = Unfolding::new(self, rows, once, &[]);
        let mut outputs = unaided.step(weights, rows, all);
        let predicted = unaided.states.into_iter().map(Revealed::predicted);
        let mut predicted: Vec<PredictedFuture> = predicted.collect();
        let logits = floats(outputs.policy());
        let candidates = candidates(rows, &logits, decoding.steps - 1);
        if !candidates.is_empty() {
            let places: Vec<i64> = candidates.iter().map(|it| it.position as i64).collect();
            let told: Vec<Option<u16>> = candidates.iter().map(|it| Some(it.played)).collect();
            let copies = rows.index_select(0, &on(&places, rows.device()));
            let mut future = Unfolding::new(self, &copies, once, &told);
            let found = future.step(weights, &copies, all.without(Output::Policy));
            let before = value(&outputs).index_select(0, &on(&places, rows.device()));
            let gains = mean_value(&found, future.q.as_ref()) - before;
            let gains = floats(&(gains * f64::from(decoding.logits_of_value())));
            let best = best(&candidates, &gains, &logits);
            improve(&mut outputs, &candidates, &gains);
            take_values(&mut outputs, &found, &best);
            for (position, candidate) in best {
                predicted[position] = future.states[candidate].clone().predicted();
            }
        }
        for output in Output::ALL.into_iter().filter(|&it| !wanted.contains(it)) {
            outputs.take(output);
        }
        (outputs, predicted)
    }
}

fn on(numbers: &[i64], device: Device) -> Tensor {
    Tensor::from_slice(numbers).to_device(device)
}

/// Returns the likeliest legal moves of each position, at most `count` per position. Positions are
/// given as rows i64 [B, words]. Rows that do not encode a position have no candidates.
fn candidates(rows: &Tensor, logits: &[f32], count: usize) -> Vec<Candidate> {
    let width = rows.size()[1] as usize;
    let words = rows.to_device(Device::Cpu).reshape([-1]);
    let words: Vec<i64> = Vec::try_from(words).expect("a vector of words");
    let mut found = Vec::new();
    let positions = words.chunks(width).zip(logits.chunks(POLICY_SIZE));
    for (position, (words, logits)) in positions.enumerate() {
        let mut row = [0; WIDTH];
        let known = width.min(WIDTH);
        row[..known].copy_from_slice(bytemuck::cast_slice(&words[..known]));
        let Ok(board) = Input::from_words(row).position() else {
            continue;
        };
        let (turn, legal) = (board.turn(), board.legal_moves());
        let mut legal: Vec<u16> = legal.iter().map(|&mv| policy_index(mv, turn)).collect();
        let logit = |index: &u16| logits[usize::from(*index)];
        legal.sort_by(|one, other| logit(other).total_cmp(&logit(one)));
        let likeliest = legal.into_iter().take(count);
        found.extend(likeliest.map(|played| Candidate { position, played }));
    }
    found
}

/// Returns the value W − L in −1…1 of each position, f32 `[B]`.
fn value(outputs: &Outputs) -> Tensor {
    let q = outputs.get(Output::Q).expect("a grid has a value");
    q.to_kind(Kind::Float).reshape([-1])
}

/// Returns the mean of the values of all boards, f32 `[B]`, in the view of the present mover.
/// `present` are the outputs for the present boards. `later` are the values f32 [B, H] of the
/// future boards, each in the view of the board's mover.
fn mean_value(present: &Outputs, later: Option<&Tensor>) -> Tensor {
    let present = value(present).unsqueeze(1);
    let Some(later) = later else {
        return present.squeeze_dim(1);
    };
    let later = later * of_first_mover(later.size()[1], later.device());
    Tensor::cat(&[present, later], 1).mean_dim([1i64].as_slice(), false, Kind::Float)
}

/// Returns, for each position that has candidates, the indices of the position and of its best
/// candidate.
fn best(candidates: &[Candidate], gains: &[f32], logits: &[f32]) -> Vec<(usize, usize)> {
    let score = |number: usize| {
        let Candidate { position, played } = candidates[number];
        logits[position * POLICY_SIZE + usize::from(played)] + gains[number]
    };
    let mut best: Vec<(usize, usize)> = Vec::new();
    for (number, candidate) in candidates.iter().enumerate() {
        match best.last_mut() {
            Some((position, leader)) if *position == candidate.position => {
                if score(number) > score(*leader) {
                    *leader = number;
                }
            }
            _ => best.push((candidate.position, number)),
        }
    }
    best
}

/// Adds the candidates' gains to the policy logits.
fn improve(outputs: &mut Outputs, candidates: &[Candidate], gains: &[f32]) {
    let policy = outputs.policy();
    let place = |it: &Candidate| it.position * POLICY_SIZE + usize::from(it.played);
    let places: Vec<i64> = candidates.iter().map(|it| place(it) as i64).collect();
    let gains = Tensor::from_slice(gains).to_device(policy.device());
    let gains = gains.to_kind(policy.kind());
    let improved = policy
        .reshape([-1])
        .index_add(0, &on(&places, policy.device()), &gains)
        .view_as(policy);
    outputs.set(Output::Policy, improved);
}

/// Replaces all outputs of each position, except the policy, with those of its best candidate.
fn take_values(outputs: &mut Outputs, found: &Outputs, best: &[(usize, usize)]) {
    let positions: Vec<i64> = best.iter().map(|it| it.0 as i64).collect();
    let numbers: Vec<i64> = best.iter().map(|it| it.1 as i64).collect();
    for output in Output::ALL {
        let (Some(before), Some(after)) = (outputs.get(output), found.get(output)) else {
            continue;
        };
        let device = before.device();
        let after = after.index_select(0, &on(&numbers, device));
        let taken = before.index_copy(0, &on(&positions, device), &after);
        outputs.set(output, taken);
    }
}
