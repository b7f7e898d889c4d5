//! Encodes a block of games in columns. Each column groups similar values and is compressed
//! separately, because the statistics of the columns differ.
//!
//! | column | contents |
//! |---|---|
//! | games | flags (bit 0: a FEN follows; bits 1–2: the result; bit 3: ratings follow; bit 4: searches follow), moves (varint), FEN (varint length, bytes), White's and Black's rating (varints, 0 where unknown), number of searches and unplayed moves (varints) |
//! | ordinals | each move's ordinal among the legal moves, one byte per move |
//! | depths | one byte per move |
//! | marks | one byte per move: bit 0: the move starts a line; bits 1–2: the kind of score |
//! | scores | literal scores as zigzag varints: centipawns as the difference from the score two main-line moves earlier (by the same engine), mates unchanged |
//! | repeats | one byte for each score that repeats one of the last 255 main-line scores: how many scores ago that one was. Variations are lines that engines expected, and carry the score of the move for which they were computed |
//! | searches | for each search: the values of the root and of the best move (i16 each), the number of moves in the policy (varint), and for each of these moves its ordinal and its share (u8, u16) |
//!
//! A column consists of its raw length and its compressed length, both u32, followed by one zstd
//! frame.

use super::column::{Column, ColumnError, write_varint, zigzag};
use crate::chess::Ratings;
use crate::data::record::{Eval, Node, Record, SearchResult};
use crate::data::sample::Wdl;

/// The zstd level. Higher levels make packing much slower, but shards hardly smaller.
const LEVEL: i32 = 15;
const COLUMNS: usize = 7;
/// Maximum size of a raw column in bytes: a thousand times the usual size.
const MAX_COLUMN: usize = 1 << 28;

const HAS_FEN: u8 = 1;
const RESULT: u8 = 1;
const HAS_RATINGS: u8 = 1 << 3;
const HAS_SEARCHES: u8 = 1 << 4;
const FLAGS: u8 = 0b1_1111;
const STARTS_LINE: u8 = 1;
const NO_SCORE: u8 = 0;
const CENTIPAWNS: u8 = 1;
const MATE: u8 = 2;
const REPEAT: u8 = 3;

/// The main-line scores of a game, to which later scores refer.
#[derive(Default)]
struct Scores(Vec<Eval>);

impl Scores {
    /// Returns how many scores ago `eval` occurred, at least 1.
    fn back(&self, eval: Eval) -> Option<u8> {
        let mut recent = self.0.iter().rev().take(255);
        let place = recent.position(|&other| other == eval)?;
        Some(place as u8 + 1)
    }

    fn at(&self, back: u8) -> Option<Eval> {
        let place = self.0.len().checked_sub(usize::from(back))?;
        self.0.get(place).copied()
    }

    /// Returns the score relative to which a score in centipawns is encoded.
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

/// Encodes the games as bytes.
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
    let [games, ordinals, depths, marks, scores, repeats, searches] = columns;
    let result = match record.result {
        None => 0,
        Some(Wdl::Win) => 1,
        Some(Wdl::Draw) => 2,
        Some(Wdl::Loss) => 3,
    };
    let flag = |holds, flag| if holds { flag } else { 0 };
    let has_ratings = record.ratings != Ratings::default();
    let has_searches = !record.searches.is_empty() || record.unplayed != 0;
    games.push(
        result << RESULT
            | flag(record.fen.is_some(), HAS_FEN)
            | flag(has_ratings, HAS_RATINGS)
            | flag(has_searches, HAS_SEARCHES),
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
    if has_searches {
        write_varint(games, record.searches.len() as u64);
        write_varint(games, record.unplayed.into());
    }
    for search in &record.searches {
        searches.extend_from_slice(&search.root_q.to_le_bytes());
        searches.extend_from_slice(&search.best_q.to_le_bytes());
        write_varint(searches, search.policy.len() as u64);
        for &(place, share) in &search.policy {
            searches.push(place);
            searches.extend_from_slice(&share.to_le_bytes());
        }
    }
    let mut known = Scores::default();
    for node in &record.nodes {
        ordinals.push(node.ordinal);
        depths.push(node.depth);
        let kind = match node.eval {
            None => NO_SCORE,
            // Main-line scores rarely repeat, because two engines rarely agree.
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

/// Decodes the games of a block.
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
    let [games, ordinals, depths, marks, scores, repeats, searches] = columns;
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
    let (mut search_count, mut unplayed) = (0, 0);
    if flags & HAS_SEARCHES != 0 {
        search_count = games.length()?;
        unplayed = u16::try_from(games.varint()?).map_err(|_| games.out_of_range())?;
    }
    let searches = (0..search_count)
        .map(|_| decode_search(searches))
        .collect::<Result<_, _>>()?;
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
        searches,
        unplayed,
    })
}

fn decode_search(searches: &mut Column) -> Result<SearchResult, ColumnError> {
    let q = |searches: &mut Column| {
        let bytes = searches.take(size_of::<i16>())?;
        Ok(i16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let (root_q, best_q) = (q(searches)?, q(searches)?);
    let length = searches.length()?;
    let bytes = length.checked_mul(3).ok_or(searches.out_of_range())?;
    let entries = searches.take(bytes)?.chunks_exact(3);
    let policy = entries.map(|entry| (entry[0], u16::from_le_bytes([entry[1], entry[2]])));
    Ok(SearchResult {
        policy: policy.collect(),
        root_q,
        best_q,
    })
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
        fn search()(
            policy in proptest::collection::vec(any::<(u8, u16)>(), 0..9),
            root_q: i16,
            best_q: i16,
        ) -> SearchResult {
            SearchResult { policy, root_q, best_q }
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
            searches in proptest::collection::vec(search(), 0..4),
            unplayed: u16,
        ) -> Record {
            Record { fen, result, ratings: Ratings { white, black }, nodes, searches, unplayed }
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
            columns in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), COLUMNS),
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
