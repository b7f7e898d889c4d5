//! Evaluates a batch with two copies: one copies the positions and the indices of their moves to
//! the device, and the other copies the logits of these moves and the values back.

use super::TorchBackend;
use crate::backend::PredictedFuture;
use crate::encode::{Input, POLICY_SIZE, WIDTH};
use crate::network::Compact;
use crate::torch::{
    NetworkError, TorchError, caught, floats, gpu, receive, send, staged, words_of,
};
use tch::Tensor;

/// The evaluation of a batch.
pub(super) struct Returned {
    /// The network's outputs in its order, each flattened row by row. The policy is empty.
    pub outputs: Vec<Vec<f32>>,
    /// The logits of the moves of all positions, in order.
    pub logits: Vec<f32>,
    /// The predicted futures, if the network predicts futures.
    pub predicted: Vec<PredictedFuture>,
}

impl TorchBackend {
    /// Evaluates positions in this number of steps. `moves` are the policy indices of the
    /// positions' legal moves.
    pub(super) fn exchange(
        &self,
        inputs: &[Input],
        moves: &[&[u16]],
        steps: Option<usize>,
    ) -> Result<Returned, NetworkError> {
        gpu::assign_stream(self.device)?;
        let compact = self.program.compact();
        let padded = self.padded(inputs);
        let [rows, places] = self.sent(&padded, moves, compact)?;
        let (returned, lengths, mut predicted) = match compact {
            Some(compact) => (compact.launch(&rows, &places)?, Vec::new(), Vec::new()),
            None => {
                let (outputs, predicted) = self.program.forward_with_futures(&rows, steps)?;
                self.check_shapes(&outputs, padded.len() as i64)?;
                let (returned, lengths) = caught(|| self.joined(outputs, &places))?;
                (returned, lengths, predicted)
            }
        };
        predicted.truncate(inputs.len());
        let returned = floats(&receive(returned)?);
        let (others, logits) = returned.split_at(returned.len() - places.numel());
        let mut outputs = match compact {
            Some(compact) => compact.finish(others),
            None => split(others, &lengths),
        };
        outputs.insert(self.heads.policy, Vec::new());
        Ok(Returned {
            outputs,
            logits: logits.to_vec(),
            predicted,
        })
    }

    /// Copies the positions' words and the indices of their moves' logits to the device.
    fn sent(
        &self,
        inputs: &[Input],
        moves: &[&[u16]],
        compact: Option<&dyn Compact>,
    ) -> Result<[Tensor; 2], TorchError> {
        let words = inputs.len() * self.width(compact);
        let count: usize = moves.iter().map(|moves| moves.len()).sum();
        let mut host = staged(words + count, self.device)?;
        let (rows, places) = words_of(&mut host).split_at_mut(words);
        self.write(inputs, compact, rows);
        write_places(moves, compact, places);
        caught(|| {
            let sent = send(host, self.device);
            let rows = sent.narrow(0, 0, words as i64);
            let rows = rows.view([inputs.len() as i64, -1]);
            [rows, sent.narrow(0, words as i64, count as i64)]
        })
    }

    /// Returns one vector and the lengths of its parts. The vector contains all outputs other than
    /// the policy, followed by the policy logits at the indices `places`.
    fn joined(&self, mut outputs: Vec<Tensor>, places: &Tensor) -> (Tensor, Vec<usize>) {
        let policy = outputs.remove(self.heads.policy).reshape([-1]);
        let mut parts: Vec<Tensor> = outputs.iter().map(|it| it.reshape([-1])).collect();
        let lengths = parts.iter().map(Tensor::numel).collect();
        parts.push(policy.index_select(0, places));
        (Tensor::cat(&parts, 0), lengths)
    }

    /// Returns the number of words per position that the program reads.
    fn width(&self, compact: Option<&dyn Compact>) -> usize {
        let width = || self.words.as_ref().map_or(WIDTH, Vec::len);
        compact.map_or_else(width, Compact::width)
    }

    /// Writes the words of positions.
    fn write(&self, inputs: &[Input], compact: Option<&dyn Compact>, out: &mut [u64]) {
        let rows = out.chunks_exact_mut(self.width(compact));
        for (input, row) in inputs.iter().zip(rows) {
            let all = input.words();
            match (compact, &self.words) {
                (Some(compact), _) => compact.write(all, row),
                (None, None) => row.copy_from_slice(all),
                (None, Some(words)) => {
                    let chosen = words.iter().map(|&word| all[word as usize]);
                    row.iter_mut().zip(chosen).for_each(|(to, from)| *to = from);
                }
            }
        }
    }
}

/// Splits a vector of concatenated outputs.
fn split(mut joined: &[f32], lengths: &[usize]) -> Vec<Vec<f32>> {
    let part = |&length: &usize| {
        let (part, rest) = joined.split_at(length);
        joined = rest;
        part.to_vec()
    };
    lengths.iter().map(part).collect()
}

/// Writes the index of each move's logit among the logits of all positions.
fn write_places(moves: &[&[u16]], compact: Option<&dyn Compact>, out: &mut [u64]) {
    let moves = moves.iter().enumerate();
    let moves = moves.flat_map(|(row, moves)| moves.iter().map(move |&mv| (row, mv)));
    for ((row, mv), out) in moves.zip(out) {
        let entry = usize::from(mv);
        let place = (row * POLICY_SIZE + entry) as u64;
        *out = compact.map_or(place, |compact| compact.place(row, entry));
    }
}
