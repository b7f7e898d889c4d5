//! The container of a weights file, which is a gzipped protobuf message. Bounds protect against
//! malicious files.

use super::schema::{MAGIC, Net};
use super::{Lc0Error, NEWEST_LC0};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::{WireType, decode_key, decode_varint, skip_field};
use std::io::{Read, Write};

/// The first bytes of compressed files.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// An upper bound on the decompressed size in bytes, far above any network.
const LARGEST: u64 = 8 << 30;
/// Largest inflated size of a small file.
const SMALLEST_BOUND: u64 = 64 << 20;
/// Largest compression ratio of a large file. Weights hardly compress, at best to two thirds of
/// their size.
const LARGEST_RATIO: u64 = 32;
/// Returns the message in a file, which may be compressed.
pub(crate) fn open(file: &[u8]) -> Result<Net, Lc0Error> {
    let bytes = match file.starts_with(&GZIP) {
        true => inflate(file)?,
        false => Bytes::copy_from_slice(file),
    };
    if !is_weights_file(&bytes) {
        return Err(Lc0Error::Magic);
    }
    Ok(Net::decode(bytes)?)
}

/// Opens a file whose network will be evaluated. Like Lc0, this function rejects files that require
/// a newer Lc0, because they may contain unknown fields or values.
///
/// # Errors
/// The errors of [`open`], and [`Lc0Error::TooNew`].
pub(crate) fn open_known(file: &[u8]) -> Result<Net, Lc0Error> {
    let net = open(file)?;
    let asked = net.min_version.unwrap_or_default();
    match asked.is_known_to(NEWEST_LC0) {
        true => Ok(net),
        false => Err(Lc0Error::TooNew {
            asked: asked.to_string(),
            newest: NEWEST_LC0,
        }),
    }
}

/// Returns whether a file, which may be compressed, begins like an Lc0 weights file. All files
/// written by Lc0's trainers begin with the magic number.
pub fn is_weights_file(file: &[u8]) -> bool {
    let mut start = [0; 5];
    let read = match file.starts_with(&GZIP) {
        true => MultiGzDecoder::new(file).read_exact(&mut start),
        false => (&*file).read_exact(&mut start),
    };
    read.is_ok() && start[0] == 0x0d && start[1..] == MAGIC.to_le_bytes()
}

/// Returns the file that contains a message, compressed as Lc0 expects.
pub(crate) fn pack(net: &Net) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(&net.encode_to_vec());
    written.and_then(|()| encoder.finish()).expect("memory")
}

fn inflate(file: &[u8]) -> Result<Bytes, Lc0Error> {
    let size = file.len() as u64;
    let bound = (size * LARGEST_RATIO).clamp(SMALLEST_BOUND, LARGEST);
    let mut bytes = Vec::new();
    MultiGzDecoder::new(file)
        .take(bound + 1)
        .read_to_end(&mut bytes)
        .map_err(Lc0Error::Gzip)?;
    if bytes.len() as u64 > bound {
        return Err(Lc0Error::TooLarge { bound });
    }
    Ok(bytes.into())
}

/// Receives a field's number and content.
pub(crate) type VisitField<'a> = dyn FnMut(u32, &[u8]) -> Result<(), Lc0Error> + 'a;

/// Visits a message's length-delimited fields, and its varints in encoded form.
pub(crate) fn fields(mut message: &[u8], visit: &mut VisitField) -> Result<(), Lc0Error> {
    while !message.is_empty() {
        let (tag, wire_type) = decode_key(&mut message)?;
        let behind = match wire_type {
            WireType::LengthDelimited => {
                let length = decode_varint(&mut message)?;
                usize::try_from(length).ok()
            }
            _ => {
                let mut rest = message;
                skip_field(wire_type, tag, &mut rest, Default::default())?;
                Some(message.len() - rest.len())
            }
        };
        let field = behind.and_then(|length| message.split_at_checked(length));
        let Some((field, rest)) = field else {
            return Err(Lc0Error::Truncated);
        };
        visit(tag, field)?;
        message = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::lc0::tensors::Tensors;
    use proptest::prelude::*;

    fn net() -> Net {
        Net {
            magic: Some(MAGIC),
            license: Some("CC0".to_owned()),
            weights: Some(Bytes::new()),
            ..Net::default()
        }
    }

    #[test]
    fn files_are_read_with_and_without_compression() {
        assert!(is_weights_file(&pack(&net())));
        assert!(!is_weights_file(&pack(&net())[..12]));
        assert_eq!(open(&pack(&net())).unwrap(), net());
        assert_eq!(open(&net().encode_to_vec()).unwrap(), net());
        assert!(matches!(open(b""), Err(Lc0Error::Magic)));
        assert!(matches!(open(b"2\n0.1 0.2"), Err(Lc0Error::Magic)));
    }

    #[test]
    fn files_for_a_later_lc0_are_refused() {
        use crate::interop::lc0::schema::EngineVersion;
        let of = |numbers: [u32; 3]| {
            let [major, minor, patch] = numbers.map(Some);
            let min_version = Some(EngineVersion {
                major,
                minor,
                patch,
            });
            pack(&Net {
                min_version,
                ..net()
            })
        };
        assert!(open_known(&pack(&net())).is_ok());
        for known in [[0, 0, 0], [0, 21, 0], [0, 33, 7], [97, 98, 99]] {
            assert!(open_known(&of(known)).is_ok(), "{known:?}");
        }
        for new in [
            [0, 34, 0],
            [0, 99, 0],
            [1, 0, 0],
            [97, 98, 100],
            [u32::MAX; 3],
        ] {
            // The metadata remains readable.
            assert!(open(&of(new)).is_ok());
            let error = open_known(&of(new)).unwrap_err();
            assert!(matches!(error, Lc0Error::TooNew { .. }), "{new:?}: {error}");
        }
        let error = open_known(&of([0, 99, 1])).unwrap_err().to_string();
        assert!(
            error.contains("0.99.1") && error.contains("up to 0.33"),
            "{error}"
        );
    }

    #[test]
    fn a_bomb_is_not_inflated() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let zeros = vec![0; 1 << 20];
        for _ in 0..80 {
            encoder.write_all(&zeros).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 1 << 17);
        assert!(matches!(open(&bomb), Err(Lc0Error::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(mut noise in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = open(&noise);
            let mut bytes = net().encode_to_vec();
            bytes.append(&mut noise);
            let _ = open(&bytes);
            let _ = Tensors::read(&bytes.into());
        }
    }
}
