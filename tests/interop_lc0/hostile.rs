//! Tests damaged and malicious files, each of which must cause an error without taking much memory
//! or time.

use super::generate::{BODY, Shape, TOWER, generate};
use super::positions::{positions, rows};
use super::protobuf::Message;
use super::{model, read};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::Write;
use std::sync::LazyLock;
use tessera::interop::lc0::{self, Lc0Error};
use tessera::network::Positions;

static FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let small = Shape {
        tower: Some((1, 4, Some(2))),
        ..TOWER
    };
    [generate(&small, 1), generate(&BODY, 2)]
});

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Reads a file. This may fail, but any resulting network must be valid.
fn survive(file: &[u8]) {
    tch::set_num_threads(1);
    let described = lc0::summary(file);
    if let Ok(network) = read(file) {
        assert_eq!(&described.unwrap().model, model(&network));
        let _ = network.forward(Positions::Rows(&rows(&positions(1, 0))));
    }
}

#[test]
fn truncated_files_are_errors() {
    for file in FILES.iter() {
        for part in (0..100).map(|part| part * file.len() / 100) {
            assert!(read(&file[..part]).is_err());
        }
        let packed = gzip(file);
        for part in (0..20).map(|part| part * packed.len() / 20) {
            assert!(read(&packed[..part]).is_err());
        }
    }
}

#[test]
fn missing_tensors_are_named() {
    let net = Message::parse(&generate(&TOWER, 1));
    let mut empty = Message::default();
    empty.set_float(1, f32::from_bits(0x1c0));
    assert!(matches!(read(&empty.bytes()), Err(Lc0Error::Empty)));
    empty.set(11, &Message::default());
    assert!(matches!(read(&empty.bytes()), Err(Lc0Error::Onnx)));
    let mut hollow = Message::default();
    hollow.set_float(1, f32::from_bits(0x1c0));
    hollow.set(4, &net.at(4));
    hollow.set(10, &Message::default());
    assert!(matches!(read(&hollow.bytes()), Err(Lc0Error::Missing(_))));
}

#[test]
fn unknown_formats_are_named() {
    let cases = [
        (
            Shape {
                input_format: 77,
                ..TOWER
            },
            "input format 77",
        ),
        (
            Shape {
                format: [99, 2, 2, 0, 0],
                ..TOWER
            },
            "network structure 99",
        ),
        (
            Shape {
                format: [4, 9, 2, 0, 0],
                ..TOWER
            },
            "policy format 9",
        ),
        (
            Shape {
                format: [4, 2, 3, 0, 0],
                ..TOWER
            },
            "value format 3",
        ),
        (
            Shape {
                format: [4, 2, 2, 0, 5],
                ..TOWER
            },
            "default activation 5",
        ),
        (
            Shape {
                body_format: [9, 0, 2],
                ..BODY
            },
            "softmax",
        ),
        (
            Shape {
                body_format: [7, 0, 3],
                ..BODY
            },
            "input embedding 3",
        ),
        (
            Shape {
                encodings: &[5],
                ..TOWER
            },
            "encoding 5",
        ),
    ];
    for (shape, named) in cases {
        let message = read(&generate(&shape, 1)).unwrap_err().to_string();
        assert!(
            message.contains(named) && !message.contains('\n'),
            "{message}"
        );
    }
    assert!(matches!(
        read(&generate(
            &Shape {
                format: [5, 2, 2, 0, 0],
                ..TOWER
            },
            1
        )),
        Err(Lc0Error::Onnx)
    ));
}

/// Creates a body in which every layer's attention has this field.
#[test]
fn relative_position_encodings_are_named() {
    let net = Message::parse(&generate(&BODY, 1));
    let weights = net.at(10);
    let mut layer = weights.all(27)[0].clone();
    let mut attention = layer.at(1);
    attention.set(10, &attention.at(1));
    layer.set(1, &attention);
    let mut changed = weights.clone();
    changed.set(27, &layer);
    let mut file = Message::default();
    file.set_float(1, f32::from_bits(0x1c0));
    file.set(4, &net.at(4));
    file.set(10, &changed);
    let message = read(&file.bytes()).unwrap_err().to_string();
    assert!(message.contains("relative position"), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn flipped_bits_do_no_harm(
        which in 0..2usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 1..12),
        packed in any::<bool>(),
    ) {
        let mut file = FILES[which].clone();
        if packed {
            file = gzip(&file);
        }
        for (place, bit) in flips {
            let place = place.index(file.len());
            file[place] ^= 1 << bit;
        }
        survive(&file);
    }

    /// Flips bits outside the tensors, in lengths, tags and formats.
    #[test]
    fn flipped_bits_of_structure_do_no_harm(
        which in 0..2usize,
        place in 0..120usize,
        byte in any::<u8>(),
    ) {
        let mut file = FILES[which].clone();
        file[place] = byte;
        survive(&file);
    }

    #[test]
    fn giant_lengths_do_no_harm(
        which in 0..2usize,
        place in any::<prop::sample::Index>(),
        length in any::<u64>(),
    ) {
        let mut file = FILES[which].clone();
        let place = place.index(file.len() - 10);
        let mut varint = length;
        for byte in &mut file[place..place + 9] {
            *byte = varint as u8 | 0x80;
            varint >>= 7;
        }
        survive(&file);
    }
}
