//! Writes solved endgames as Syzygy tables, in the format of Ronald de Man's generator with the
//! simplest compression that it allows: codes of equal length.

use crate::tablebase::endgame::{Endgame, TURNS};
use crate::tablebase::rook_knight::RookKnight;
use shakmaty::{Color, Role};
use std::fs;
use std::path::Path;

const WDL_MAGIC: [u8; 4] = [0x71, 0xe8, 0x23, 0x5d];
const DTZ_MAGIC: [u8; 4] = [0xd7, 0x66, 0x0c, 0xa5];
/// Each side to move has its own subtable.
const SPLIT: u8 = 1;
const HAS_PAWNS: u8 = 2;
/// DTZ tables contain plies rather than pairs of plies.
const EXACT: u8 = 4 | 8;
const SINGLE_VALUE: u8 = 128;
/// Binary logarithms of the number of bytes per block and of the number of values between two
/// entries of the sparse index.
const BLOCK: u32 = 8;
const SPAN: u32 = 9;
/// The alignment of data, and the remainder of the file length modulo the alignment.
const ALIGNMENT: usize = 64;
const TAIL: usize = 16;

/// WDL values for the side to move.
pub const LOSS: u8 = 0;
pub const BLESSED_LOSS: u8 = 1;
pub const DRAW: u8 = 2;
pub const CURSED_WIN: u8 = 3;
pub const WIN: u8 = 4;

/// The pieces of a table.
struct Layout {
    name: String,
    /// The pieces in the order of each subtable's index.
    pieces: Vec<u8>,
    /// There is one subtable per file to which the first pawn can be mirrored.
    files: usize,
}

impl Layout {
    const KING: u8 = 6;
    const BLACK: u8 = 8;

    fn of(role: Role) -> Layout {
        let (piece, other) = (role as u8, Layout::BLACK | Layout::KING);
        let (files, pieces) = match role {
            Role::Pawn => (4, vec![piece, Layout::KING, other]),
            _ => (1, vec![Layout::KING, piece, other]),
        };
        Layout {
            name: format!("K{}vK", role.upper_char()),
            pieces,
            files,
        }
    }

    fn of_rook_knight() -> Layout {
        let white = [Layout::KING, Role::Rook as u8];
        let black = [Layout::KING, Role::Knight as u8].map(|piece| Layout::BLACK | piece);
        Layout {
            name: "KRvKN".to_owned(),
            pieces: [white, black].concat(),
            files: 1,
        }
    }

    /// Returns the magic number, the layout, and the pieces of the subtables.
    fn header(&self, magic: [u8; 4]) -> Vec<u8> {
        let mut file = magic.to_vec();
        file.push(if self.files > 1 {
            SPLIT | HAS_PAWNS
        } else {
            SPLIT
        });
        for _ in 0..self.files {
            file.push(0);
            // The same for both sides to move.
            file.extend(self.pieces.iter().map(|piece| piece | piece << 4));
        }
        pad(&mut file, 2);
        file
    }
}

/// Writes the WDL table of an endgame.
pub fn write_wdl(folder: &Path, endgame: &Endgame) {
    let sides = TURNS.map(|turn| values(endgame, turn).map(wdl).collect());
    write(
        folder,
        &Layout::of(endgame.role),
        "rtbw",
        WDL_MAGIC,
        0,
        &sides,
    );
}

/// Writes the DTZ table of an endgame, with White to move.
pub fn write_dtz(folder: &Path, endgame: &Endgame) {
    let side = values(endgame, Color::White).map(plies).collect();
    write(
        folder,
        &Layout::of(endgame.role),
        "rtbz",
        DTZ_MAGIC,
        EXACT,
        &[side],
    );
}

/// Writes both tables of king and rook against king and knight.
pub fn write_rook_knight(folder: &Path, solved: &RookKnight<'_>) {
    let layout = Layout::of_rook_knight();
    let sides = TURNS.map(|turn| solved.by_index(turn));
    let coded = |code: fn(i32) -> u16| {
        sides
            .each_ref()
            .map(|side| side.iter().map(|&value| code(value)).collect::<Vec<_>>())
    };
    write(folder, &layout, "rtbw", WDL_MAGIC, 0, &coded(wdl));
    write(
        folder,
        &layout,
        "rtbz",
        DTZ_MAGIC,
        EXACT,
        &coded(plies)[..1],
    );
}

/// Writes the WDL table of a pawnless endgame with a constant value for each side to move.
pub fn write_flat(folder: &Path, role: Role, [white, black]: [u8; 2]) {
    let layout = Layout::of(role);
    let mut file = layout.header(WDL_MAGIC);
    file.extend([SINGLE_VALUE, white, SINGLE_VALUE, black]);
    finish(folder, &layout, "rtbw", file);
}

fn values(endgame: &Endgame, turn: Color) -> impl Iterator<Item = i32> {
    (0..Endgame::size(endgame.role)).map(move |index| endgame.value_at(index, turn).unwrap_or(0))
}

fn wdl(value: i32) -> u16 {
    match value {
        1.. => WIN.into(),
        0 => DRAW.into(),
        ..0 => LOSS.into(),
    }
}

/// Returns the number of plies to the next zeroing move, minus one; the WDL table distinguishes
/// wins from losses.
fn plies(value: i32) -> u16 {
    value.unsigned_abs().max(1) as u16 - 1
}

/// A subtable, whose values are codes of this many bits.
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

    /// Writes the compression header: canonical codes of equal length, one per value.
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
            // Twelve bits contain the value, and twelve mark the symbol as a leaf.
            let symbol = u32::from(value) | 0xfff << 12;
            file.extend(&symbol.to_le_bytes()[..3]);
        }
        pad(file, 2);
    }

    /// Writes the block and the offset of the middle of every span.
    fn write_sparse_index(&self, file: &mut Vec<u8>) {
        let span = 1 << SPAN;
        for start in (0..self.values.len()).step_by(span) {
            let middle = start + span / 2;
            // The middle of the last span may lie beyond the last block.
            let block = (middle / self.in_block()).min(self.blocks() - 1);
            let place = middle - block * self.in_block();
            file.extend((block as u32).to_le_bytes());
            file.extend((place as u16).to_le_bytes());
        }
    }

    /// Writes the number of values in each block, minus one.
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
    layout: &Layout,
    extension: &str,
    magic: [u8; 4],
    flags: u8,
    sides: &[Vec<u16>],
) {
    let files = layout.files;
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
    let mut file = layout.header(magic);
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
    finish(folder, layout, extension, file);
}

fn finish(folder: &Path, layout: &Layout, extension: &str, mut file: Vec<u8>) {
    pad(&mut file, ALIGNMENT);
    file.resize(file.len() + TAIL, 0);
    let name = format!("{}.{extension}", layout.name);
    fs::write(folder.join(name), file).unwrap();
}

fn pad(file: &mut Vec<u8>, unit: usize) {
    file.resize(file.len().next_multiple_of(unit), 0);
}
