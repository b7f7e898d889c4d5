//! Golden values, which PyTorch has confirmed and which are stored for machines without it.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};
use zip::write::FileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Number of sums stored per array. Each sum adds the elements with random signs, so an error in
/// one element changes every sum by that error.
const SUMS: u64 = 8;

/// Returns whether golden files should be rewritten.
fn is_written() -> bool {
    env::var("TESSERA_GOLDEN").is_ok_and(|wanted| wanted == "write")
}

/// The values of one test, by label.
pub struct Golden {
    path: PathBuf,
    kept: BTreeMap<String, Value>,
    found: BTreeMap<String, Value>,
    is_judged: bool,
}

impl Golden {
    /// Opens the file with that name. `is_judged` states whether PyTorch is available, in which
    /// case the test fails if PyTorch computes a different value.
    pub fn open(name: &str, is_judged: bool) -> Golden {
        let path = folder().join(format!("{name}.json"));
        assert!(
            is_judged || !is_written(),
            "only PyTorch can confirm golden values: tools/test --torch"
        );
        let kept = match is_written() {
            true => BTreeMap::new(),
            false => serde_json::from_slice(&fs::read(&path).unwrap()).unwrap(),
        };
        Golden {
            path,
            kept,
            found: BTreeMap::new(),
            is_judged,
        }
    }

    /// Checks an array. Each element may deviate by `tolerance`, which is relative to the root mean
    /// square if that exceeds 1.
    pub fn numbers(&mut self, label: &str, numbers: &[f64], tolerance: f64) {
        let count = numbers.len() as f64;
        let square = numbers.iter().map(|number| number * number).sum::<f64>() / count;
        // Errors with random signs add up like a random walk.
        let allowed = 3.0 * tolerance * square.sqrt().max(1.0) * count.sqrt();
        let sums = (0..SUMS).map(|seed| signed_sum(numbers, seed));
        let sums: Vec<f64> = sums.map(|sum| (sum * 1e7).round() / 1e7).collect();
        if let Some(kept) = self.kept.get(label) {
            let kept: Vec<f64> = serde_json::from_value(kept.clone()).unwrap();
            let off = sums.iter().zip(&kept).map(|(a, b)| (a - b).abs());
            let off = off.fold(0.0, f64::max);
            println!("{label}: off by {off:.1e} of {allowed:.1e}");
            assert!(
                kept.len() == sums.len() && off <= allowed,
                "{label} is off by {off:.1e}, beyond {allowed:.1e}: {}",
                self.remedy()
            );
        }
        self.put(label, json!(sums));
    }

    /// Checks bytes, which must match exactly.
    pub fn bytes(&mut self, label: &str, bytes: &[u8]) {
        let digest = format!("{:x}", Sha256::digest(bytes));
        if let Some(kept) = self.kept.get(label) {
            assert!(*kept == digest, "{label} has changed: {}", self.remedy());
        }
        self.put(label, json!(digest));
    }

    fn put(&mut self, label: &str, value: Value) {
        let before = self.found.insert(label.to_owned(), value);
        assert!(before.is_none(), "{label} is held twice");
    }

    fn remedy(&self) -> String {
        let judged = match self.is_judged {
            true => "PyTorch computes the same as we do",
            false => "PyTorch was not asked (tools/test --torch asks it)",
        };
        format!(
            "{judged}, but {} says otherwise; see tests/golden.rs",
            self.path.display()
        )
    }

    /// Ends the test, after asserting that all stored values were checked.
    pub fn finish(self) {
        if is_written() {
            let text = serde_json::to_string_pretty(&self.found).unwrap();
            // One array per line.
            let text = text.replace("\n    ", " ").replace("\n  ]", " ]");
            return fs::write(&self.path, text + "\n").unwrap();
        }
        let labels = |values: &BTreeMap<String, Value>| values.keys().cloned().collect::<Vec<_>>();
        assert_eq!(labels(&self.found), labels(&self.kept), "{}", self.remedy());
    }
}

/// Puts files written by PyTorch into `folder`. If a Python with PyTorch is available, calls
/// `write` with its path; otherwise, takes the files from the golden archive with that name.
pub fn files(
    name: &str,
    folder: &Path,
    names: &[&str],
    python: Option<&Path>,
    write: impl FnOnce(&Path),
) {
    let path = self::folder().join(format!("{name}.zip"));
    if let Some(python) = python {
        write(python);
        if is_written() {
            let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
            let options = FileOptions::default()
                .compression_method(CompressionMethod::Deflated)
                .last_modified_time(zip::DateTime::default());
            for name in names {
                archive.start_file(*name, options).unwrap();
                archive
                    .write_all(&fs::read(folder.join(name)).unwrap())
                    .unwrap();
            }
            fs::write(path, archive.finish().unwrap().into_inner()).unwrap();
        }
        return;
    }
    let mut archive = ZipArchive::new(Cursor::new(fs::read(path).unwrap())).unwrap();
    for name in names {
        let mut bytes = Vec::new();
        let mut entry = archive.by_name(name).unwrap();
        entry.read_to_end(&mut bytes).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn signed_sum(numbers: &[f64], seed: u64) -> f64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let signed = numbers
        .iter()
        .map(|&number| if random.random() { number } else { -number });
    signed.sum()
}

#[test]
fn one_number_that_is_off_is_seen() {
    let numbers: Vec<f64> = (0..1858).map(|place| f64::from(place).sin()).collect();
    let folder = tempfile::tempdir().unwrap();
    let kept = (0..SUMS).map(|seed| signed_sum(&numbers, seed));
    let kept: Vec<f64> = kept.collect();
    let hold = |numbers: &[f64]| {
        let mut golden = Golden {
            path: folder.path().join("x.json"),
            kept: BTreeMap::from([("x".to_owned(), json!(kept))]),
            found: BTreeMap::new(),
            is_judged: false,
        };
        golden.numbers("x", numbers, 1e-5);
    };
    hold(&numbers);
    for place in [0, 700, 1857] {
        let mut changed = numbers.clone();
        changed[place] += 0.002;
        let held = std::panic::catch_unwind(|| hold(&changed));
        assert!(held.is_err(), "{place}");
    }
    let mut swapped = numbers.clone();
    swapped.swap(3, 40);
    assert!(std::panic::catch_unwind(|| hold(&swapped)).is_err());
    assert!(std::panic::catch_unwind(|| hold(&numbers[1..])).is_err());
}
