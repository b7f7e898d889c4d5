//! Decompresses chunks.

use std::io::Read;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use libdeflater::Decompressor;

/// Maximum size of a decompressed chunk in bytes. This is thirty thousand records, a hundred times
/// as many as a long game has. Larger data is not a chunk or is an attempt to exhaust memory.
pub const MAX_UNPACKED: usize = 1 << 28;

/// The error for larger files.
pub(super) const TOO_LARGE: &str = "it holds more than any chunk";

/// An upper bound on the compression ratio of deflate.
const MAX_RATIO: usize = 1032;
/// The first bytes of every gzip member: the magic number and the only compression method.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// The bytes of a chunk, stored in words so that its records are aligned.
#[derive(Default)]
pub(super) struct Unpacked {
    words: Vec<u32>,
    length: usize,
}

impl Unpacked {
    pub(super) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }

    /// Decompresses gzip data, and returns other data unchanged. If decompression fails, returns
    /// the bytes before the fault and the reason.
    pub(super) fn new(packed: &[u8]) -> (Unpacked, Option<Arc<str>>) {
        let mut unpacked = Unpacked::default();
        if !is_gzip(packed) {
            let read = packed.len().min(MAX_UNPACKED);
            unpacked.room(read).copy_from_slice(&packed[..read]);
            return (unpacked, (read < packed.len()).then(|| TOO_LARGE.into()));
        }
        if unpacked.inflate_whole(packed) {
            return (unpacked, None);
        }
        unpacked.inflate_piecemeal(packed)
    }

    /// Reserves space for this many bytes.
    fn room(&mut self, length: usize) -> &mut [u8] {
        self.words.resize(length.div_ceil(size_of::<u32>()), 0);
        self.length = length;
        &mut bytemuck::cast_slice_mut(&mut self.words)[..length]
    }

    /// Inflates an undamaged file with a single member, which is the usual case. This is several
    /// times faster than the fallback.
    fn inflate_whole(&mut self, packed: &[u8]) -> bool {
        let Some(length) = promised_length(packed) else {
            return false;
        };
        // Only the first member would be inflated, so the file must not have a second one.
        let is_single = !packed[1..].windows(MAGIC.len()).any(|bytes| bytes == MAGIC);
        is_single && Decompressor::new().gzip_decompress(packed, self.room(length)) == Ok(length)
    }

    /// Inflates any file, including files with several members; a damaged file is inflated up to
    /// the damage.
    fn inflate_piecemeal(mut self, packed: &[u8]) -> (Unpacked, Option<Arc<str>>) {
        let mut bytes = Vec::new();
        let mut reader = MultiGzDecoder::new(packed).take(MAX_UNPACKED as u64 + 1);
        let error = reader.read_to_end(&mut bytes).err();
        let mut fault = error.map(|error| error.to_string().into());
        if bytes.len() > MAX_UNPACKED {
            bytes.truncate(MAX_UNPACKED);
            fault = Some(TOO_LARGE.into());
        }
        self.room(bytes.len()).copy_from_slice(&bytes);
        (self, fault)
    }
}

pub(super) fn is_gzip(packed: &[u8]) -> bool {
    packed.starts_with(&MAGIC)
}

/// Returns the decompressed length stated at the end of a gzip file, if this length is plausible.
fn promised_length(packed: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*packed.last_chunk()?) as usize;
    let limit = MAX_UNPACKED.min(packed.len().saturating_mul(MAX_RATIO));
    (length <= limit).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use std::io::Write;

    fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    proptest! {
        #[test]
        fn members_follow_one_another(
            members in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 1..4),
        ) {
            let packed: Vec<u8> = members.iter().flat_map(|member| pack(member)).collect();
            let (unpacked, fault) = Unpacked::new(&packed);
            prop_assert!(fault.is_none());
            prop_assert_eq!(unpacked.bytes(), members.concat());
        }

        #[test]
        fn damage_leaves_what_stands_before_it(
            bytes in proptest::collection::vec(any::<u8>(), 1..2000),
            place: prop::sample::Index,
            change in 1..=255u8,
        ) {
            let packed = pack(&bytes);
            // The file is long enough to be recognised as gzip.
            let cut = &packed[..place.index(packed.len() - 3) + 3];
            let (unpacked, fault) = Unpacked::new(cut);
            prop_assert!(fault.is_some());
            prop_assert!(bytes.starts_with(unpacked.bytes()));
            let mut changed = packed.clone();
            changed[place.index(packed.len())] ^= change;
            let _ = Unpacked::new(&changed);
        }
    }

    #[test]
    fn a_bomb_is_stopped() {
        // Each member consists of zeros and has a plausible length.
        let member = pack(&vec![0; MAX_UNPACKED / 4]);
        let (unpacked, fault) = Unpacked::new(&member.repeat(5));
        assert_eq!(fault.as_deref(), Some(TOO_LARGE));
        assert_eq!(unpacked.bytes().len(), MAX_UNPACKED);
    }
}
