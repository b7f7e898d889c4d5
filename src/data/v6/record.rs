//! A V6 record, field by field, and its conversion to a sample.

use shakmaty::{Chess, EnPassantMode, Position};

use crate::data::legal::{LEGAL_WORDS, Legal};
use crate::data::sample::{Policy, Sample, Wdl};
use crate::encode::{BOARDS, EN_PASSANT, Input, POLICY_SIZE, WIDTH};

use super::V6Fault;

/// Size in bytes of a version-6 record.
pub const RECORD_SIZE: usize = size_of::<V6Record>();
/// The version written, and the older of the two versions that can be read.
pub const VERSION: u32 = 6;
/// The newer of the two versions that can be read. Compared with version 6, its records also
/// contain D of the short-term value, the policy indices of the previous and the next move played,
/// and eight unused numbers.
pub(super) const V7: u32 = 7;
/// Size in bytes of a version-7 record.
pub const V7_RECORD_SIZE: usize = RECORD_SIZE + 4 + 2 * 2 + 8 * 4;
/// The only input format that can be read: the classical 112 planes.
pub const FORMAT: u32 = 1;

/// Flag: a rescorer marked the position for deletion.
pub const DELETED: u8 = 1 << 6;
/// Flag: the game was adjudicated.
pub const ADJUDICATED: u8 = 1 << 5;
/// Flag: the game reached the maximum length.
pub const CUT_OFF: u8 = 1 << 4;
/// Flag: the best move's value is proven.
pub const PROVEN: u8 = 1 << 3;

/// Maximum deviation of a policy's sum from one, which allows for rounding two thousand numbers to
/// half precision.
const SUM_TOLERANCE: f32 = 1e-2;
/// Maximum amount by which a value may exceed its range because of rounding.
pub(super) const VALUE_TOLERANCE: f32 = 1e-3;
/// Upper bound on the number of plies in a game.
const MAX_PLIES: f32 = 20_000.0;

const _: () = assert!(RECORD_SIZE == 8356 && V7_RECORD_SIZE == 8396);
// The record is read by reinterpreting its bytes.
const _: () = assert!(cfg!(target_endian = "little"));

/// A record as stored in a chunk. Values are from the perspective of the side to move. Q is W − L,
/// D is the probability of a draw, and M is the number of plies left.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, packed(4))]
pub struct V6Record {
    /// [`VERSION`], or 7 for a record read from version 7.
    pub version: u32,
    /// Always [`FORMAT`].
    pub input_format: u32,
    /// Share of the visits by policy index; −1 for illegal moves.
    pub probabilities: [f32; POLICY_SIZE],
    /// The bitboards of the history in the order of [`Input`]. Compared with [`Input`], the files
    /// of each rank are reversed: the a-file is the highest bit of a byte.
    pub planes: [u64; BOARDS],
    /// Whether the mover may castle queenside.
    pub castling_us_queenside: u8,
    /// Whether the mover may castle kingside.
    pub castling_us_kingside: u8,
    /// Whether the opponent may castle queenside.
    pub castling_them_queenside: u8,
    /// Whether the opponent may castle kingside.
    pub castling_them_kingside: u8,
    /// 1 if Black is to move.
    pub black_to_move: u8,
    /// Number of plies since the last capture or pawn move.
    pub rule50: u8,
    /// Flags: bit 6 is [`DELETED`], bit 5 is [`ADJUDICATED`], bit 4 is [`CUT_OFF`] and bit 3 is
    /// [`PROVEN`]. In input formats that transform the board, bit 7 is the side to move, and bits
    /// 2–0 are the transform.
    pub invariance_info: u8,
    /// Unused; contained the result in earlier versions.
    pub dummy: u8,
    /// Q of the root.
    pub root_q: f32,
    /// Q of the best move.
    pub best_q: f32,
    /// D of the root.
    pub root_d: f32,
    /// D of the best move.
    pub best_d: f32,
    /// M of the root.
    pub root_m: f32,
    /// M of the best move.
    pub best_m: f32,
    /// Number of plies to the end of the game.
    pub plies_left: f32,
    /// Q of the result: 1, 0 or −1.
    pub result_q: f32,
    /// D of the result, 1 for a draw and otherwise 0.
    pub result_d: f32,
    /// Q of the move played.
    pub played_q: f32,
    /// D of the move played.
    pub played_d: f32,
    /// M of the move played.
    pub played_m: f32,
    /// The network's Q; NaN if unknown. `orig_d` and `orig_m` are then NaN, too.
    pub orig_q: f32,
    /// The network's D.
    pub orig_d: f32,
    /// The network's M.
    pub orig_m: f32,
    /// Number of root visits.
    pub visits: u32,
    /// Policy index of the move played.
    pub played_idx: u16,
    /// Policy index of the best move.
    pub best_idx: u16,
    /// Kullback–Leibler divergence of the visits from the network's policy.
    pub policy_kld: f32,
    /// Short-term Q; 0 until a rescorer fills it in.
    pub q_st: f32,
}

impl V6Record {
    /// Returns the position and its history.
    ///
    /// A castling right belongs to the outermost rook on its side of the king, as in X-FEN. The
    /// en-passant square is derived from the history.
    ///
    /// # Errors
    /// [`V6Fault`] if the planes do not form a legal position.
    pub fn input(&self) -> Result<Input, V6Fault> {
        self.decode().map(|(input, _)| input)
    }

    /// Returns the position and its history, as a network input and as a position.
    fn decode(&self) -> Result<(Input, Chess), V6Fault> {
        let mut words = [0; WIDTH];
        for (word, plane) in words.iter_mut().zip(self.planes) {
            *word = mirror_files(plane);
        }
        let (ours, theirs) = (0, 6);
        let rook = |right: u8, side: usize, back_rank: u64, is_queenside: bool| {
            if right == 0 {
                return Ok(0);
            }
            let [rooks, king] = [words[side + 3], words[side + 5]];
            outermost_rook(rooks & back_rank, king & back_rank, is_queenside)
        };
        let (first, last) = (0xff, 0xff << 56);
        let scalars = [
            rook(self.castling_us_queenside, ours, first, true)?,
            rook(self.castling_us_kingside, ours, first, false)?,
            rook(self.castling_them_queenside, theirs, last, true)?,
            rook(self.castling_them_kingside, theirs, last, false)?,
            u64::from(self.black_to_move != 0),
            u64::from(self.rule50),
        ];
        words[BOARDS..BOARDS + scalars.len()].copy_from_slice(&scalars);
        let position = Input::from_words(words).position()?;
        let en_passant = position.ep_square(EnPassantMode::PseudoLegal);
        words[EN_PASSANT] = en_passant.map_or(0, |square| {
            let square = position.turn().fold_wb(square, square.flip_vertical());
            1 << u32::from(square)
        });
        Ok((Input::from_words(words), position))
    }

    /// Overwrites the position and its history; this is the inverse of [`V6Record::input`].
    pub fn set_input(&mut self, input: &Input) {
        let (planes, scalars) = input.words().split_at(BOARDS);
        self.planes = std::array::from_fn(|plane| mirror_files(planes[plane]));
        self.castling_us_queenside = u8::from(scalars[0] != 0);
        self.castling_us_kingside = u8::from(scalars[1] != 0);
        self.castling_them_queenside = u8::from(scalars[2] != 0);
        self.castling_them_kingside = u8::from(scalars[3] != 0);
        self.black_to_move = u8::from(input.turn().is_black());
        self.rule50 = u8::try_from(input.rule50()).unwrap_or(u8::MAX);
    }

    /// Returns the legal moves, which are the moves with a non-negative probability.
    pub fn legal(&self) -> Legal {
        let mut words = [0; LEGAL_WORDS];
        for (word, probabilities) in words.iter_mut().zip(self.probabilities.chunks(64)) {
            for (bit, &probability) in probabilities.iter().enumerate() {
                *word |= u64::from(probability >= 0.0) << bit;
            }
        }
        Legal::from_words(words)
    }

    /// Returns the game's result for the side to move. Returns `None` if the game has no result, or
    /// if a rescorer has blended the result with its estimate of a later blunder.
    pub(super) fn result(&self) -> Option<Wdl> {
        let is_certain = |share: f32| (share - 1.0).abs() < 1e-3;
        if is_certain(self.result_d) {
            Some(Wdl::Draw)
        } else if is_certain(self.result_q) {
            Some(Wdl::Win)
        } else if is_certain(-self.result_q) {
            Some(Wdl::Loss)
        } else {
            None
        }
    }

    /// Returns the record as a training sample. The policy consists of the shares of the visits,
    /// the value is the best move's Q, and the short-term value is set if a rescorer has filled it
    /// in.
    ///
    /// # Errors
    /// [`V6Fault`] if the planes do not form a legal position, the policy does not match the legal
    /// moves, or a value is out of range.
    pub fn sample(&self) -> Result<Sample, V6Fault> {
        let (input, position) = self.decode()?;
        let legal = self.legal();
        let true_legal = Legal::of(&position.legal_moves(), position.turn());
        if let Some(index) = legal.difference(&true_legal) {
            return Err(V6Fault::Legal(index));
        }
        for index in [self.played_idx, self.best_idx] {
            if !legal.contains(index) {
                return Err(V6Fault::Move(index));
            }
        }
        let policy: Vec<(u16, f32)> = legal
            .iter()
            .map(|index| (index, self.probabilities[usize::from(index)]))
            .filter(|&(_, probability)| probability > 0.0)
            .collect();
        let sum: f32 = policy.iter().map(|&(_, probability)| probability).sum();
        if !(1.0 - SUM_TOLERANCE..=1.0 + SUM_TOLERANCE).contains(&sum) {
            return Err(V6Fault::Sum(sum));
        }
        self.check_values()?;
        Ok(Sample {
            input,
            legal,
            policy: Policy::Distribution(policy),
            result: self.result(),
            q: Some(self.best_q),
            short_term: Some(self.q_st).filter(|&q| q != 0.0),
            moves_left: Some(self.plies_left),
            weight: 1.0,
        })
    }

    /// Checks that the targets are within their ranges.
    fn check_values(&self) -> Result<(), V6Fault> {
        let q = -1.0 - VALUE_TOLERANCE..=1.0 + VALUE_TOLERANCE;
        let values = [
            ("root_q", self.root_q, &q),
            ("best_q", self.best_q, &q),
            ("q_st", self.q_st, &q),
            ("result_q", self.result_q, &q),
            ("result_d", self.result_d, &(0.0..=1.0)),
            ("plies_left", self.plies_left, &(0.0..=MAX_PLIES)),
        ];
        let outside = values
            .into_iter()
            .find(|(_, value, range)| !range.contains(value));
        outside.map_or(Ok(()), |(name, value, _)| {
            Err(V6Fault::Value { name, value })
        })
    }
}

/// Reverses the files of every rank. The function is its own inverse.
fn mirror_files(plane: u64) -> u64 {
    plane.reverse_bits().swap_bytes()
}

/// Returns the back-rank rook that a castling right belongs to.
fn outermost_rook(rooks: u64, king: u64, is_queenside: bool) -> Result<u64, V6Fault> {
    if king == 0 || rooks == 0 {
        return Err(V6Fault::Castling);
    }
    let lowest = 1 << rooks.trailing_zeros();
    let highest = 1 << (63 - rooks.leading_zeros());
    match is_queenside {
        true if lowest < king => Ok(lowest),
        false if highest > king => Ok(highest),
        _ => Err(V6Fault::Castling),
    }
}
