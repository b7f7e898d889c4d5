//! Tests malicious and damaged files.

use super::allocations::peak;
use super::checkpoint::{Checkpoint, Pickle, archive};
use super::{Parameter, random_parameters, small};
use cpu_time::ThreadTime;
use proptest::prelude::*;
use std::sync::LazyLock;
use std::time::Duration;
use tessera::interop::maia3::{self, Maia3Error};
use tessera::network::Network;
use tessera::network::maia3::Maia3Config;
use zip::CompressionMethod;

/// Memory that reading a file may take in addition to a few times the file's size.
const ALLOWANCE: usize = 64 << 20;

fn tiny() -> Vec<Parameter> {
    let mut config: Maia3Config = small()[1].clone();
    (config.layers, config.gab.generator) = (1, 1);
    random_parameters(&config, 11)
}

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| Checkpoint::new(&tiny()).bytes());

/// Reads a file, and asserts that this takes no more than the permitted CPU time and memory.
fn read(file: &[u8]) -> Result<Network, Maia3Error> {
    let begun = ThreadTime::now();
    let (result, held) = peak(|| maia3::summary(file).and_then(|_| maia3::read(file)));
    let taken = begun.elapsed();
    assert!(taken < Duration::from_secs(10), "{taken:?}");
    assert!(held <= 4 * file.len() + ALLOWANCE, "{held} bytes held");
    result
}

fn error(file: &[u8]) -> String {
    read(file).unwrap_err().to_string()
}

/// Returns an archive that contains only the pickle.
fn pickled(pickle: &[u8]) -> Vec<u8> {
    archive(
        &[("data.pkl".to_owned(), pickle.to_vec())],
        CompressionMethod::Stored,
    )
}

/// Returns whether a network has exactly the parameters that were written.
fn is_whole(network: &Network) -> bool {
    let parameters = tiny();
    network
        .parameters()
        .into_iter()
        .zip(&parameters)
        .all(|((_, found), (_, _, values))| {
            Vec::<f32>::try_from(found.flatten(0, -1)).unwrap() == *values
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_part_is_refused(share in 0.0..1.0f64) {
        let len = (share * GOOD.len() as f64) as usize;
        prop_assert!(read(&GOOD[..len]).is_err());
    }

    /// A changed bit may go unnoticed only if nothing depends on it, as in a date.
    #[test]
    fn flipped_bits_are_detected(place in any::<prop::sample::Index>(), bit in 0..8u32) {
        let mut file = GOOD.clone();
        let place = place.index(file.len());
        file[place] ^= 1u8 << bit;
        if let Ok(network) = read(&file) {
            prop_assert!(is_whole(&network));
        }
    }

    /// Damages the directory at the end of the file, on which everything else depends.
    #[test]
    fn a_damaged_directory_is_detected(
        changes in prop::collection::vec((0..6000usize, any::<u8>()), 1..8),
    ) {
        let mut file = GOOD.clone();
        let len = file.len();
        for (place, value) in changes {
            file[len - 1 - place] = value;
        }
        if let Ok(network) = read(&file) {
            prop_assert!(is_whole(&network));
        }
    }

    /// Damages pickles by removing, duplicating or changing parts, and packs them into a valid
    /// archive, so that no checksum detects the damage.
    #[test]
    fn damaged_pickles_are_harmless(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..6),
    ) {
        let parameters = tiny();
        let mut pickle = Checkpoint::new(&parameters).pickle_alone();
        for (place, value, what) in changes {
            let place = place.index(pickle.len());
            match what {
                0 => pickle[place] = value,
                1 => drop(pickle.remove(place)),
                _ => pickle.insert(place, value),
            }
        }
        let file = Checkpoint::new(&parameters).with_pickle(pickle);
        let _ = read(&file);
    }

    #[test]
    fn random_bytes_are_refused(noise in prop::collection::vec(any::<u8>(), 0..500)) {
        prop_assert!(read(&noise).is_err());
        prop_assert!(read(&[b"PK\x03\x04", &noise[..]].concat()).is_err());
        prop_assert!(read(&pickled(&noise)).is_err());
    }
}

#[test]
fn pickles_are_not_executed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("ran");
    let command = format!("touch {}", trace.display());
    for (callable, told) in [
        (&b"cos\nsystem\n"[..], "os.system"),
        (b"cposix\nsystem\n", "posix.system"),
        (b"cnt\nsystem\n", "nt.system"),
        (b"csubprocess\nPopen\n", "subprocess.Popen"),
        (b"\x8c\x08builtins\x8c\x04eval\x93", "builtins.eval"),
        (b"c__builtin__\nexec\n", "__builtin__.exec"),
        (b"ctorch\nload\n", "torch.load"),
        (b"ctorch.jit\nload\n", "torch.jit.load"),
        (b"cbuiltins\ngetattr\n", "builtins.getattr"),
    ] {
        let mut pickle = Pickle(b"\x80\x04".to_vec());
        pickle.raw(callable).text(&command).raw(b"\x85R.");
        let message = error(&pickled(&pickle.0));
        assert!(message.contains(told), "{message}");
        assert!(message.contains("was not run"), "{message}");
        // The same command must not run in place of a tensor's name, storage or shape either.
        let mut pickle = Pickle(b"\x80\x02}(".to_vec());
        pickle
            .text("fc_value.weight")
            .raw(b"ctorch._utils\n_rebuild_tensor_v2\n(");
        pickle.raw(callable).text(&command).raw(b"\x85RtRu.");
        assert!(error(&pickled(&pickle.0)).contains(told));
    }
    assert!(!trace.exists());
}

#[test]
fn chains_and_nesting_are_bounded() {
    let deep = [&b"]".repeat(1 << 20)[..], &b"a".repeat((1 << 20) - 1), b"."].concat();
    let chain = [
        b"ccollections\nOrderedDict\n",
        &b")R".repeat(1 << 19)[..],
        b".",
    ]
    .concat();
    let laughs = [b"]", &b"q\x00]h\x00ah\x00ah\x00a".repeat(1 << 17)[..], b"."].concat();
    let tall = [&b"(".repeat(1 << 20)[..], b"."].concat();
    let long = b"N".repeat(3 << 20);
    for pickle in [deep, chain, laughs, tall, long] {
        assert!(read(&pickled(&pickle)).is_err());
    }
}

#[test]
fn giant_claims_take_no_memory() {
    for (len, shape, strides) in [
        (1i64 << 40, &[1i64 << 40][..], &[1i64][..]),
        (1, &[1 << 40], &[0]),
        (i64::MAX, &[1 << 31, 1 << 31], &[1 << 31, 1]),
        (i64::MAX, &[i64::MAX, i64::MAX], &[1, 1]),
        (4, &[1 << 62, 4, 0], &[1, 1, 1]),
        (0, &[0], &[1]),
        (-1, &[1], &[1]),
    ] {
        let mut pickle = Pickle(b"\x80\x02}".to_vec());
        pickle.text("elo_embedding_low.weight");
        pickle
            .raw(b"ctorch._utils\n_rebuild_tensor_v2\n((")
            .text("storage");
        pickle.raw(b"ctorch\nFloatStorage\n").text("0").text("cpu");
        pickle.number(len).raw(b"tQK\x00(");
        for &size in shape {
            pickle.number(size);
        }
        pickle.raw(b"t(");
        for &stride in strides {
            pickle.number(stride);
        }
        pickle.raw(b"t\x89NtRs.");
        let entries = [
            ("data.pkl".to_owned(), pickle.0),
            ("data/0".to_owned(), vec![0; 16]),
        ];
        assert!(read(&archive(&entries, CompressionMethod::Stored)).is_err());
    }
}

#[test]
fn zip_bombs_are_not_unpacked() {
    let zeros = vec![0; 256 << 20];
    for bomb in ["data.pkl", "data/0"] {
        let parameters = tiny();
        let pickle = match bomb {
            "data.pkl" => zeros.clone(),
            _ => Checkpoint::new(&parameters).pickle_alone(),
        };
        let entries = [
            ("data.pkl".to_owned(), pickle),
            ("data/0".to_owned(), zeros.clone()),
        ];
        let file = archive(&entries, CompressionMethod::Deflated);
        assert!(file.len() < 2 << 20);
        assert!(error(&file).contains("is compressed"));
    }
}

/// A zip64 directory that claims more entries than fit into memory.
#[test]
fn a_giant_directory_is_refused() {
    let mut file = b"PK\x03\x04".to_vec();
    let record = file.len() as u64;
    let entries = 1u64 << 40;
    file.extend(b"PK\x06\x06");
    file.extend(44u64.to_le_bytes());
    file.extend([0; 12]);
    file.extend(entries.to_le_bytes());
    file.extend(entries.to_le_bytes());
    file.extend([0; 16]);
    file.extend(b"PK\x06\x07");
    file.extend(0u32.to_le_bytes());
    file.extend(record.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    file.extend(b"PK\x05\x06");
    file.extend([0, 0, 0, 0, 255, 255, 255, 255]);
    file.extend([255; 8]);
    file.extend([0, 0]);
    let message = error(&file);
    assert!(
        message.contains("too many entries: 1099511627776"),
        "{message}"
    );
}

/// Every tensor is a view of the same few values, so a small file describes a giant network.
#[test]
fn tensors_that_share_their_numbers_are_refused() {
    let config = Maia3Config {
        layers: 60,
        ..small()[0].clone()
    };
    let parameters = random_parameters(&config, 2);
    let honest = Checkpoint::new(&parameters);
    assert!(read(&honest.bytes()).is_ok());
    let message = error(&honest.with_one_storage_for_all());
    assert!(message.contains("share memory"), "{message}");
}

/// Text from a file is escaped and shortened before it reaches the terminal.
#[test]
fn text_of_the_file_is_sanitised() {
    let long = "x".repeat(1000);
    for name in ["\u{1b}]0;title\u{7}", "two\nlines", &long] {
        let mut parameters = tiny();
        parameters.push((name.to_owned(), vec![1], vec![0.0]));
        let message = error(&Checkpoint::new(&parameters).bytes());
        assert!(message.contains("a tensor whose name"), "{message}");
        // The same text, as the name of a storage and as a global to call.
        let mut pickle = Pickle(b"\x80\x04}".to_vec());
        pickle
            .text("fc_value.bias")
            .raw(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        pickle
            .text("storage")
            .raw(b"ctorch\nFloatStorage\n")
            .text(name);
        pickle
            .text("cpu")
            .raw(b"K\x03tQK\x00K\x03\x85K\x01\x85\x89NtRs.");
        assert!(error(&pickled(&pickle.0)).contains("malformed at byte"));
        let mut pickle = Pickle(b"\x80\x04".to_vec());
        pickle.text(name).text(name).raw(b"\x93.");
        let message = error(&pickled(&pickle.0));
        assert!(message.contains("was not run") && message.len() < 400);
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}

/// A description is read before any parameter, so its claims are unchecked.
#[test]
fn descriptions_of_giant_networks_are_refused() {
    let config = Maia3Config {
        layers: 1,
        ..small()[0].clone()
    };
    for (name, side) in [
        ("token_projection.weight", 0),
        ("elo_embedding_low.weight", 1),
        ("gab_shared_weight", 1),
        ("transformer.layers.0.linear1.weight", 0),
        ("transformer.layers.0.self_attn.sm2.weight", 0),
        ("transformer.layers.0.self_attn.sm3.weight", 0),
        ("fc_value_hid.weight", 0),
    ] {
        for size in [0, 1 << 16, 1 << 31, 1 << 48] {
            let mut parameters = random_parameters(&config, 1);
            let parameter = parameters.iter_mut().find(|p| p.0 == name).unwrap();
            parameter.1[side] = size;
            assert!(read(&Checkpoint::new(&parameters).with_claimed_storages()).is_err());
        }
    }
}
