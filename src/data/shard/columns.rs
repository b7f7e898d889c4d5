//! A block of games as columns, each compressed for itself: like values stand
//! together, and a code fitted to one column does not suit another.
//!
//! | column | holds |
//! |---|---|
//! | games | flags (bit 0: a FEN follows; bits 1–2: the result; bit 3: ratings follow), moves (varint), FEN (varint length, bytes), White's and Black's rating (varints, 0 where unknown) |
//! | ordinals | the move's place among the legal ones, a byte a move |
//! | depths | a byte a move |
//! | marks | a byte a move: bit 0 starts a line, bits 1–2 the kind of score |
//! | scores | literal scores as zigzag varints: centipawns as the difference to the score two moves of the own line before (the same engine's), mates as they are |
//! | repeats | a byte for each score that repeats one of the last 255 on the own line: how many scores back it stands. Variations are engines' expectations and carry the score of the move that they were computed for |
//!
//! A column is its raw length and its compressed length, both u32, then one
//! zstd frame.

use crate::data::record::{Eval, Node, Ratings, Record};
use crate::data::sample::Wdl;

/// zstd's level: above it packing slows down much more than shards shrink.
const LEVEL: i32 = 15;
const COLUMNS: usize = 6;
/// Longest raw column that is read: a thousand times the usual.
const MAX_COLUMN: usize = 1 << 28;

const HAS_FEN: u8 = 1;
const RESULT: u8 = 1;
const HAS_RATINGS: u8 = 1 << 3;
const FLAGS: u8 = 0b1111;
const STARTS_LINE: u8 = 1;
const NO_SCORE: u8 = 0;
const CENTIPAWNS: u8 = 1;
const MATE: u8 = 2;
const REPEAT: u8 = 3;

/// Why a block's bytes are not games.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// A column ends before the moves do.
    #[error("column {0} ends too early")]
    Short(usize),
    /// A column goes on after the moves.
    #[error("column {0} is too long")]
    Long(usize),
    /// The decompressor refused.
    #[error("column {column} does not decompress: {source}")]
    Compression {
        /// The column, from 0.
        column: usize,
        /// What it said.
        source: std::io::Error,
    },
    /// A value that no writer writes.
    #[error("column {0} holds a value out of range")]
    Range(usize),
}

/// The scores of the own line of a game, which later scores refer to.
#[derive(Default)]
struct Scores(Vec<Eval>);

impl Scores {
    /// How many scores back `eval` stands, at least 1.
    fn back(&self, eval: Eval) -> Option<u8> {
        let mut recent = self.0.iter().rev().take(255);
        let place = recent.position(|&other| other == eval)?;
        Some(place as u8 + 1)
    }

    fn at(&self, back: u8) -> Option<Eval> {
        let place = self.0.len().checked_sub(usize::from(back))?;
        self.0.get(place).copied()
    }

    /// What a literal score in centipawns is written relative to.
    fn reference(&self) -> i16 {
        match self.at(2).or_else(|| self.at(1)) {
            Some(Eval::Centipawns(centipawns)) => centipawns,
            _ => 0,
        }
    }

    fn note(&mut self, node: &Node) {
        if node.depth == 0 {
            self.0.extend(node.eval);
        }
    }
}

/// The games as bytes.
pub(super) fn encode(records: &[Record]) -> std::io::Result<Vec<u8>> {
    let mut columns: [Vec<u8>; COLUMNS] = Default::default();
    for record in records {
        encode_record(record, &mut columns);
    }
    let mut bytes = Vec::new();
    for column in columns {
        let frame = zstd::bulk::compress(&column, LEVEL)?;
        bytes.extend_from_slice(&(column.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&frame);
    }
    Ok(bytes)
}

fn encode_record(record: &Record, columns: &mut [Vec<u8>; COLUMNS]) {
    let [games, ordinals, depths, marks, scores, repeats] = columns;
    let result = match record.result {
        None => 0,
        Some(Wdl::Win) => 1,
        Some(Wdl::Draw) => 2,
        Some(Wdl::Loss) => 3,
    };
    let flag = |holds, flag| if holds { flag } else { 0 };
    let has_ratings = record.ratings != Ratings::default();
    games.push(
        result << RESULT | flag(record.fen.is_some(), HAS_FEN) | flag(has_ratings, HAS_RATINGS),
    );
    write_varint(games, record.nodes.len() as u64);
    if let Some(fen) = &record.fen {
        write_varint(games, fen.len() as u64);
        games.extend_from_slice(fen.as_bytes());
    }
    if has_ratings {
        for rating in [record.ratings.white, record.ratings.black] {
            write_varint(games, rating.unwrap_or(0).into());
        }
    }
    let mut known = Scores::default();
    for node in &record.nodes {
        ordinals.push(node.ordinal);
        depths.push(node.depth);
        let kind = match node.eval {
            None => NO_SCORE,
            // Scores of the own line are news: two engines rarely agree.
            Some(eval) => match (known.back(eval).filter(|_| node.depth > 0), eval) {
                (Some(back), _) => {
                    repeats.push(back);
                    REPEAT
                }
                (None, Eval::Centipawns(centipawns)) => {
                    let difference = i64::from(centipawns) - i64::from(known.reference());
                    write_varint(scores, zigzag(difference));
                    CENTIPAWNS
                }
                (None, Eval::Mate(moves)) => {
                    write_varint(scores, zigzag(moves.into()));
                    MATE
                }
            },
        };
        marks.push(kind << 1 | if node.starts_line { STARTS_LINE } else { 0 });
        known.note(node);
    }
}

/// The games of a block's bytes.
pub(super) fn decode(mut bytes: &[u8]) -> Result<Vec<Record>, ColumnError> {
    let mut raw: [Vec<u8>; COLUMNS] = Default::default();
    for (column, raw) in raw.iter_mut().enumerate() {
        let mut length = || {
            let (length, rest) = bytes
                .split_first_chunk()
                .ok_or(ColumnError::Short(column))?;
            bytes = rest;
            Ok(u32::from_le_bytes(*length) as usize)
        };
        let (raw_length, frame_length) = (length()?, length()?);
        if raw_length > MAX_COLUMN {
            return Err(ColumnError::Range(column));
        }
        let frame = bytes.split_at_checked(frame_length);
        let (frame, rest) = frame.ok_or(ColumnError::Short(column))?;
        bytes = rest;
        *raw = zstd::bulk::decompress(frame, raw_length)
            .map_err(|source| ColumnError::Compression { column, source })?;
    }
    let mut columns: [Column; COLUMNS] = std::array::from_fn(|number| Column {
        number,
        rest: &raw[number],
    });
    let mut records = Vec::new();
    while !columns[0].rest.is_empty() {
        records.push(decode_record(&mut columns)?);
    }
    match columns.iter().find(|column| !column.rest.is_empty()) {
        Some(column) => Err(ColumnError::Long(column.number)),
        None => Ok(records),
    }
}

fn decode_record(columns: &mut [Column; COLUMNS]) -> Result<Record, ColumnError> {
    let [games, ordinals, depths, marks, scores, repeats] = columns;
    let flags = games.byte()?;
    if flags & !FLAGS != 0 {
        return Err(games.out_of_range());
    }
    let result = match flags >> RESULT & 0b11 {
        0 => None,
        1 => Some(Wdl::Win),
        2 => Some(Wdl::Draw),
        _ => Some(Wdl::Loss),
    };
    let length = games.length()?;
    let fen = if flags & HAS_FEN != 0 {
        let length = games.length()?;
        let fen = games.take(length)?;
        let fen = std::str::from_utf8(fen).map_err(|_| games.out_of_range())?;
        Some(fen.to_owned())
    } else {
        None
    };
    let mut ratings = Ratings::default();
    if flags & HAS_RATINGS != 0 {
        for rating in [&mut ratings.white, &mut ratings.black] {
            let value = u16::try_from(games.varint()?).map_err(|_| games.out_of_range())?;
            *rating = Some(value).filter(|&value| value > 0);
        }
    }
    let ordinals = ordinals.take(length)?;
    let depths = depths.take(length)?;
    let marks_of_nodes = marks.take(length)?;
    let mut known = Scores::default();
    let mut nodes = Vec::with_capacity(length);
    for ((&ordinal, &depth), &mark) in ordinals.iter().zip(depths).zip(marks_of_nodes) {
        let eval = match mark >> 1 {
            NO_SCORE => None,
            CENTIPAWNS => {
                let centipawns = i64::from(known.reference()).checked_add(scores.signed()?);
                let centipawns = centipawns.and_then(|centipawns| centipawns.try_into().ok());
                Some(Eval::Centipawns(centipawns.ok_or(scores.out_of_range())?))
            }
            MATE => {
                let moves = scores.signed()?.try_into();
                Some(Eval::Mate(moves.map_err(|_| scores.out_of_range())?))
            }
            REPEAT => {
                let back = repeats.byte()?;
                Some(known.at(back).ok_or(repeats.out_of_range())?)
            }
            _ => return Err(marks.out_of_range()),
        };
        let node = Node {
            ordinal,
            depth,
            starts_line: mark & STARTS_LINE != 0,
            eval,
        };
        known.note(&node);
        nodes.push(node);
    }
    Ok(Record {
        fen,
        result,
        ratings,
        nodes,
    })
}

/// What is left to read of a column.
struct Column<'a> {
    number: usize,
    rest: &'a [u8],
}

impl<'a> Column<'a> {
    fn out_of_range(&self) -> ColumnError {
        ColumnError::Range(self.number)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ColumnError> {
        let split = self.rest.split_at_checked(length);
        let (taken, rest) = split.ok_or(ColumnError::Short(self.number))?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, ColumnError> {
        Ok(self.take(1)?[0])
    }

    /// An integer in groups of seven bits, the lowest first.
    fn varint(&mut self) -> Result<u64, ColumnError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.out_of_range())
    }

    /// A length; what it counts must still be checked against what is there.
    fn length(&mut self) -> Result<usize, ColumnError> {
        let length = self.varint()?;
        usize::try_from(length).map_err(|_| self.out_of_range())
    }

    fn signed(&mut self) -> Result<i64, ColumnError> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn eval() -> impl Strategy<Value = Option<Eval>> {
        prop_oneof![
            3 => Just(None),
            3 => (-40i16..40).prop_map(|centipawns| Some(Eval::Centipawns(centipawns))),
            1 => any::<i16>().prop_map(|centipawns| Some(Eval::Centipawns(centipawns))),
            1 => any::<i16>().prop_map(|moves| Some(Eval::Mate(moves))),
        ]
    }

    prop_compose! {
        fn node()(
            ordinal: u8,
            depth in 0u8..3,
            starts_line: bool,
            eval in eval(),
        ) -> Node {
            Node { ordinal, depth, starts_line, eval }
        }
    }

    prop_compose! {
        fn record()(
            fen in proptest::option::of(".{0,40}"),
            result in prop_oneof![
                Just(None), Just(Some(Wdl::Win)), Just(Some(Wdl::Draw)), Just(Some(Wdl::Loss))
            ],
            white in proptest::option::of(1u16..),
            black in proptest::option::of(1u16..),
            nodes in proptest::collection::vec(node(), 0..60),
        ) -> Record {
            Record { fen, result, ratings: Ratings { white, black }, nodes }
        }
    }

    proptest! {
        #[test]
        fn games_come_back_as_they_went(records in proptest::collection::vec(record(), 0..8)) {
            let bytes = encode(&records).unwrap();
            prop_assert_eq!(decode(&bytes).unwrap(), records);
        }

        #[test]
        fn any_bytes_are_read_without_panic(
            columns in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 6),
            garbage in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut bytes = Vec::new();
            for column in columns {
                let frame = zstd::bulk::compress(&column, 1).unwrap();
                bytes.extend_from_slice(&(column.len() as u32).to_le_bytes());
                bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
                bytes.extend_from_slice(&frame);
            }
            let _ = decode(&bytes);
            let _ = decode(&garbage);
        }
    }
}
