//! Writes solved endgames as Syzygy tables: the format of Ronald de Man's
//! generator, with the plainest compression that it allows, codes of equal length.

use crate::tablebase::endgame::{Endgame, TURNS};
use shakmaty::{Color, Role};
use std::fs;
use std::path::Path;

const WDL_MAGIC: [u8; 4] = [0x71, 0xe8, 0x23, 0x5d];
const DTZ_MAGIC: [u8; 4] = [0xd7, 0x66, 0x0c, 0xa5];
/// The two sides have different pieces.
const SPLIT: u8 = 1;
const HAS_PAWNS: u8 = 2;
/// DTZ tables hold plies, not pairs of them.
const EXACT: u8 = 4 | 8;
const SINGLE_VALUE: u8 = 128;
/// Logarithms of the bytes in a block and of the values between two entries of
/// the sparse index.
const BLOCK: u32 = 8;
const SPAN: u32 = 9;
/// The logarithm of what data begin at a multiple of, and how a file's length
/// differs from one.
const ALIGNMENT: usize = 64;
const TAIL: usize = 16;

/// What WDL tables say of the side to move.
pub const LOSS: u8 = 0;
pub const BLESSED_LOSS: u8 = 1;
pub const DRAW: u8 = 2;
pub const CURSED_WIN: u8 = 3;
pub const WIN: u8 = 4;

/// Writes the WDL table of an endgame.
pub fn write_wdl(folder: &Path, endgame: &Endgame) {
    let of_side = |turn| {
        let wdl = |value: Option<i32>| match value.unwrap_or(0) {
            1.. => u16::from(WIN),
            0 => u16::from(DRAW),
            ..0 => u16::from(LOSS),
        };
        values(endgame, turn).map(wdl).collect::<Vec<_>>()
    };
    let sides = TURNS.map(of_side);
    write(folder, endgame.role, "rtbw", WDL_MAGIC, 0, &sides);
}

/// Writes the DTZ table of an endgame, with White to move.
pub fn write_dtz(folder: &Path, endgame: &Endgame) {
    let plies = |value: Option<i32>| value.map_or(0, |value| value.max(1) as u16 - 1);
    let side = values(endgame, Color::White).map(plies).collect();
    write(folder, endgame.role, "rtbz", DTZ_MAGIC, EXACT, &[side]);
}

/// Writes the WDL table of an endgame without pawns of which it says the same
/// everywhere, of each side to move.
pub fn write_flat(folder: &Path, role: Role, [white, black]: [u8; 2]) {
    let mut file = header(role, WDL_MAGIC);
    file.extend([SINGLE_VALUE, white, SINGLE_VALUE, black]);
    finish(folder, role, "rtbw", file);
}

fn values(endgame: &Endgame, turn: Color) -> impl Iterator<Item = Option<i32>> {
    (0..Endgame::size(endgame.role)).map(move |index| endgame.value_at(index, turn))
}

/// Magic, layout, and which pieces each subtable's index goes by.
fn header(role: Role, magic: [u8; 4]) -> Vec<u8> {
    const KING: u8 = 6;
    const BLACK: u8 = 8;
    let piece = role as u8;
    let mut file = magic.to_vec();
    let (layout, files, pieces) = match role {
        Role::Pawn => (SPLIT | HAS_PAWNS, 4, [piece, KING, BLACK | KING]),
        _ => (SPLIT, 1, [KING, piece, BLACK | KING]),
    };
    file.push(layout);
    for _ in 0..files {
        file.push(0);
        // The same for either side to move.
        file.extend(pieces.map(|piece| piece | piece << 4));
    }
    pad(&mut file, 2);
    file
}

/// A subtable: its values in codes of so many bits.
struct Part<'a> {
    values: &'a [u16],
    bits: usize,
}

impl Part<'_> {
    fn in_block(&self) -> usize {
        (8 << BLOCK) / self.bits
    }

    fn blocks(&self) -> usize {
        self.values.len().div_ceil(self.in_block())
    }

    /// How it is compressed: canonical codes of one length, each for a value of
    /// its own.
    fn write_header(&self, file: &mut Vec<u8>, flags: u8) {
        let bits = self.bits as u8;
        file.extend([flags, BLOCK as u8, SPAN as u8, 0]);
        file.extend((self.blocks() as u32).to_le_bytes());
        file.extend([bits, bits]);
        let lowest: u16 = 0;
        file.extend(lowest.to_le_bytes());
        let symbols: u16 = 1 << bits;
        file.extend(symbols.to_le_bytes());
        for value in 0..symbols {
            // Twelve bits of value, and twelve that say that it is one.
            let symbol = u32::from(value) | 0xfff << 12;
            file.extend(&symbol.to_le_bytes()[..3]);
        }
        pad(file, 2);
    }

    /// The block and the place in it of the middle of every span.
    fn write_sparse_index(&self, file: &mut Vec<u8>) {
        let span = 1 << SPAN;
        for start in (0..self.values.len()).step_by(span) {
            let middle = start + span / 2;
            // That of the last span may lie beyond the last block.
            let block = (middle / self.in_block()).min(self.blocks() - 1);
            let place = middle - block * self.in_block();
            file.extend((block as u32).to_le_bytes());
            file.extend((place as u16).to_le_bytes());
        }
    }

    /// One less than the number of values of each block.
    fn write_block_lengths(&self, file: &mut Vec<u8>) {
        for block in self.values.chunks(self.in_block()) {
            file.extend((block.len() as u16 - 1).to_le_bytes());
        }
    }

    fn write_blocks(&self, file: &mut Vec<u8>) {
        for block in self.values.chunks(self.in_block()) {
            pad(file, ALIGNMENT);
            let start = file.len();
            file.resize(start + (1 << BLOCK), 0);
            for (number, &value) in block.iter().enumerate() {
                for bit in 0..self.bits {
                    let place = number * self.bits + bit;
                    let set = value >> (self.bits - 1 - bit) & 1;
                    file[start + place / 8] |= (set as u8) << (7 - place % 8);
                }
            }
        }
    }
}

fn write(
    folder: &Path,
    role: Role,
    extension: &str,
    magic: [u8; 4],
    flags: u8,
    sides: &[Vec<u16>],
) {
    let files = if role == Role::Pawn { 4 } else { 1 };
    let bits = |values: &[u16]| {
        let most = values.iter().max().copied().unwrap_or(0).max(1);
        most.ilog2() as usize + 1
    };
    let parts: Vec<Part> = (0..files)
        .flat_map(|file| sides.iter().map(move |side| (file, side)))
        .map(|(file, side)| {
            let length = side.len() / files;
            let values = &side[file * length..(file + 1) * length];
            Part {
                values,
                bits: bits(values),
            }
        })
        .collect();
    let mut file = header(role, magic);
    parts
        .iter()
        .for_each(|part| part.write_header(&mut file, flags));
    parts
        .iter()
        .for_each(|part| part.write_sparse_index(&mut file));
    parts
        .iter()
        .for_each(|part| part.write_block_lengths(&mut file));
    parts.iter().for_each(|part| part.write_blocks(&mut file));
    finish(folder, role, extension, file);
}

fn finish(folder: &Path, role: Role, extension: &str, mut file: Vec<u8>) {
    pad(&mut file, ALIGNMENT);
    file.resize(file.len() + TAIL, 0);
    let name = format!("K{}vK.{extension}", role.upper_char());
    fs::write(folder.join(name), file).unwrap();
}

fn pad(file: &mut Vec<u8>, unit: usize) {
    file.resize(file.len().next_multiple_of(unit), 0);
}
