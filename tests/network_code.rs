//! Network files are untrusted. These tests cover the code that a file may contain, and the
//! rejection of all other code.

mod exporters;
pub mod records;

use crate::building::BuiltModule;
use crate::interop_lc0::generate::{TOWER, generate};
use crate::interop_maia3::allocations::peak;
use assert_cmd::Command;
use cpu_time::ThreadTime;
use proptest::prelude::*;
use records::Records;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{self, Child, ChildStdout, Stdio};
use std::sync::LazyLock;
use std::time::Duration;
use tch::{Device, Kind, Tensor};
use tessera::backend::{CodePolicy, DeviceChoice, Precision, Way};
use tessera::chess::Game;
use tessera::encode::Input;
use tessera::inference::{self, open_by};
use tessera::interop::lc0;
use tessera::network::Network;
use tessera::network::lc0::HeadChoice;
use tessera::torch::tensor_hash;
use tessera::torch::{ExportPrecision, Module, open};

const TESSERA: &str = env!("CARGO_BIN_EXE_tessera");
const CODE: &str = "code/__torch__.py";
const DATA: &str = "data.pkl";
const METADATA: &str = "extra/metadata.json";

/// Memory that a check may use in addition to a few times the file's size.
const ALLOWANCE: usize = 64 << 20;

/// Returns a small tower, similar to Maia's.
fn network() -> Network {
    lc0::read(&generate(&TOWER, 5), HeadChoice::default()).unwrap()
}

/// The tower's file with an unknown family, because networks of unknown families run the code in
/// their files.
static GOOD: LazyLock<Records> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.pt");
    network().write(ExportPrecision::F32, &path).unwrap();
    let records = Records::read(&std::fs::read(path).unwrap());
    let (family, other) = (br#""family":"lc0""#, br#""family":"own""#);
    let records = records.replaced(METADATA, family, other);
    records.replaced(DATA, family, other)
});

/// Returns the network's file with additional lines in `meta`.
fn with_meta(lines: &str) -> Records {
    let last = "    return self.metadata\n";
    let lines = format!("{lines}{last}");
    GOOD.replaced(CODE, last.as_bytes(), lines.as_bytes())
}

/// Returns the network's file with an additional method.
fn with_method(method: &str) -> Records {
    let meta = "  def meta(";
    GOOD.replaced(CODE, meta.as_bytes(), format!("{method}{meta}").as_bytes())
}

/// Returns a file with two records of the same name.
fn twice(name: &str) -> Vec<u8> {
    let other: String = name.replace('.', "_");
    let mut records = GOOD.clone();
    records.0.push((other.clone(), GOOD.get(name).to_vec()));
    let mut file = records.file();
    let places: Vec<usize> = (0..file.len())
        .filter(|&at| file[at..].starts_with(other.as_bytes()))
        .collect();
    assert_eq!(places.len(), 2);
    for at in places {
        file[at..][..name.len()].copy_from_slice(name.as_bytes());
    }
    file
}

/// Returns malicious files with the expected errors; one of them tries to write to `written`.
fn hostile(written: &Path) -> Vec<(Vec<u8>, &'static str)> {
    let save = format!("    torch.save(self.metadata, \"{}\")\n", written.display());
    let nested = |open: &str, close: &str| {
        let depth = 100_000 / open.len();
        let (open, close) = (open.repeat(depth), close.repeat(depth));
        with_meta(&format!("    _0 = {open}1{close}\n")).file()
    };
    let setstate = "  def __setstate__(self: __torch__.Network, state: str) -> NoneType:\n    \
                    return None\n";
    let global = |name: &str| {
        let tensor = b"torch._utils\n_rebuild_tensor_v2\n";
        GOOD.replaced(DATA, tensor, name.as_bytes()).file()
    };
    let mut memory = b"\x80\x02)r\xff\xff\xff\x7f".to_vec();
    memory.extend(&GOOD.get(DATA)[2..]);
    vec![
        (with_meta(&save).file(), "unsupported operator `torch.save`"),
        (
            with_meta(&save.replace("torch.save", "_0 = ops.aten.save")).file(),
            "unsupported operator `ops.aten.save`",
        ),
        (
            with_meta("    while True:\n      _0 = 1\n").file(),
            "unsupported keyword `while`",
        ),
        (
            with_meta("    for _ in range(9223372036854775807):\n      _0 = 1\n").file(),
            "unsupported keyword `for`",
        ),
        (
            with_meta(&"    _0 = torch.neg(_0)\n".repeat(5000)).file(),
            "more than 2000 calls",
        ),
        (
            with_meta("    _0 = ops.tessera.winograd(1, 2, 3, 4)\n").file(),
            "unsupported operator `ops.tessera.winograd`",
        ),
        (
            with_method(setstate).file(),
            "unsupported method `__setstate__`",
        ),
        (nested("(", ")"), "nested more than"),
        (nested("[", "]"), "nested more than"),
        (nested("torch.neg(", ")"), "nested more than"),
        (nested("-", ""), "unsupported line `_0 = -----"),
        (nested("not ", ""), "unsupported keyword `not`"),
        (
            global("torch._utils\n_rebuild_sparse_tensor\n"),
            "`torch._utils._rebuild_sparse_tensor`",
        ),
        (
            global("torch._utils\n_rebuild_qtensor\n"),
            "`torch._utils._rebuild_qtensor`",
        ),
        (global("posix\nsystem\n"), "`posix.system`"),
        (
            global("__torch__.torch.classes.quantized\nConv2dPackedParamsBase\n"),
            "Conv2dPackedParamsBase`",
        ),
        (GOOD.with(DATA, memory).file(), "malformed pickle"),
        (
            GOOD.with("data/0", vec![0; 4]).file(),
            "record `data/0` does not have the size",
        ),
        (
            GOOD.with("code/__torch__/other.py", "").file(),
            "unexpected record `code/__torch__/other.py`",
        ),
        (
            GOOD.with("model.json", "{}").file(),
            "unexpected record `model.json`",
        ),
        (
            GOOD.with("../../\u{1b}[2J", "").file(),
            "unexpected record `../../\\u{1b}[2J`",
        ),
        (
            GOOD.with("constants.pkl", &b"\x80\x02(K\x01t."[..]).file(),
            "`constants.pkl`",
        ),
        (twice(DATA), "duplicate record names"),
        (
            GOOD.replaced(CODE, b"  metadata : str\n", b"").file(),
            "different attributes",
        ),
    ]
}

/// An engine process, killed on drop.
struct Engine {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Engine {
    fn start() -> Engine {
        let mut command = process::Command::new(TESSERA);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Engine { child, lines }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads lines up to one that starts with `last`.
    fn until(&mut self, last: &str) -> Vec<String> {
        let mut said = Vec::new();
        while !said
            .last()
            .is_some_and(|line: &String| line.starts_with(last))
        {
            said.push(self.lines.next().unwrap().unwrap());
        }
        said
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a small file that decompresses to a large one.
fn bomb(name: &str) -> Vec<u8> {
    let mut records = GOOD.clone();
    records.0.retain(|record| record.0 != name);
    records.file_with(name, 256)
}

#[test]
fn malicious_files_are_refused_by_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("written");
    let mut files = hostile(&written);
    files.extend([
        (bomb(CODE), "is too large"),
        (bomb(DATA), "is too large"),
        (bomb("version"), "is too large"),
        (bomb("data/0"), "record `data/0` is compressed"),
    ]);
    for (file, told) in files {
        let begun = ThreadTime::now();
        let (opened, held) = peak(|| open(&file, CodePolicy::Checked));
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(told), "{told}: {error}");
        assert!(!error.contains('\n') && error.len() < 300, "{error}");
        let taken = begun.elapsed();
        assert!(taken < Duration::from_secs(5), "{told}: {taken:?}");
        assert!(held <= 4 * file.len() + ALLOWANCE, "{told}: {held} bytes");
    }
    assert!(!written.exists());
}

#[test]
fn malicious_files_are_refused_by_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("written");
    let mut engine = Engine::start();
    let files = hostile(&written);
    for (index, (file, told)) in files.iter().enumerate() {
        let path = folder.path().join(format!("{index}.pt"));
        std::fs::write(&path, file).unwrap();
        engine.say(&format!(
            "setoption name Net value {}\nisready",
            path.display()
        ));
        let said = engine.until("readyok").join("\n");
        let refusal = said
            .lines()
            .find(|line| line.starts_with("info string ERROR"));
        let refusal = refusal.unwrap_or_else(|| panic!("{told}: {said}"));
        assert!(refusal.contains(told), "{refusal}");
        assert!(refusal.contains("AllowNetworkCode"), "{refusal}");
        // Only the first few files, which are representative, are tested in a separate process.
        if index < 8 {
            let output = Command::new(TESSERA).arg("describe").arg(&path).assert();
            let output = output.failure();
            let output = output.get_output();
            let said = String::from_utf8(output.stderr.clone()).unwrap();
            assert!(output.stdout.is_empty());
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(
                said.contains(told) && said.contains("--allow-code"),
                "{said}"
            );
        }
    }
    engine.say("setoption name Net value <built-in>\nposition startpos\ngo nodes 1");
    assert_ne!(engine.until("bestmove").last().unwrap(), "bestmove (none)");
    assert!(!written.exists());
}

/// Tests harmless code that none of our exporters writes.
#[test]
fn foreign_code_runs_when_allowed() {
    let method = "  def other(self: __torch__.Network) -> str:\n    return \"other\"\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foreign.pt");
    let file = with_method(method).file();
    assert!(open(&file, CodePolicy::Checked).is_err());
    let (_, metadata) = open(&file, CodePolicy::Allowed).unwrap();
    assert_eq!(metadata.licence, network().about.licence);
    std::fs::write(&path, file).unwrap();
    let mut describe = Command::new(TESSERA);
    describe
        .arg("describe")
        .arg(&path)
        .arg("--allow-code")
        .assert()
        .success();
    let mut engine = Engine::start();
    engine.say("setoption name AllowNetworkCode value true");
    engine.say(&format!("setoption name Net value {}", path.display()));
    engine.say("position startpos\ngo nodes 10");
    assert_ne!(engine.until("bestmove").last().unwrap(), "bestmove (none)");
}

#[test]
fn files_without_metadata_are_foreign() {
    let mut records = GOOD.clone();
    records.0.retain(|record| record.0 != METADATA);
    for policy in [CodePolicy::Checked, CodePolicy::Allowed] {
        let error = open(&records.file(), policy).unwrap_err().to_string();
        assert!(
            error.contains("without the record `extra/metadata.json`"),
            "{error}"
        );
    }
}

/// Returns the file after adding the hash of its tensors.
fn with_hash(records: &Records) -> Vec<u8> {
    let tensors = Module::load(&records.file()).unwrap().tensors().unwrap();
    let json = std::str::from_utf8(records.get(METADATA)).unwrap();
    let mut metadata: serde_json::Value = serde_json::from_str(json).unwrap();
    metadata["hash"] = tensor_hash(tensors).into();
    records.with(METADATA, metadata.to_string()).file()
}

/// The bias has fewer elements than the channels to which a kernel adds it.
#[test]
fn a_convolution_with_a_short_bias_is_an_error() {
    let channels = b"K\x10t(K\x01t";
    let short = GOOD.replaced(DATA, channels, b"K\x01t(K\x01t");
    let file = with_hash(&short);
    let (device, precision) = (DeviceChoice::Cpu, Precision::F32);
    let error = open_by(Way::File, &file, CodePolicy::Checked, device, precision, 1).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("libtorch cannot run it") && !error.contains('\n'),
        "{error}"
    );
}

/// The code is that of a known family, except for a computed epsilon or for a head width whose
/// product with the number of heads wraps around to the correct width. libtorch runs such code
/// unchanged, but players reject it.
#[test]
fn opened_networks_run_none_of_their_code() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/tessera-xs.pt");
    let shipped = Records::read(&std::fs::read(shipped).unwrap());
    let (device, precision) = (DeviceChoice::Cpu, Precision::F32);
    let load = |file: &[u8]| open_by(Way::File, file, CodePolicy::Checked, device, precision, 1);
    let play = |records: &Records| {
        let file = records.file();
        let backend = inference::open(&file, CodePolicy::Checked, device, precision, 1).unwrap();
        backend.forward(&[Input::encode(&Game::default())]).unwrap()
    };
    let wide = format!("{}]", (1u64 << 62) + 32);
    let wraps = shipped
        .replaced(CODE, b"2, 4, 32]", format!("2, 4, {wide}").as_bytes())
        .replaced(CODE, b"64, 4, 32]", format!("64, 4, {wide}").as_bytes());
    let error = load(&wraps.file()).unwrap_err().to_string();
    assert!(error.contains("libtorch cannot run it"), "{error}");
    let epsilon = shipped.replaced(
        CODE,
        b", 0.001)",
        b", torch.mean(torch.sigmoid(torch.to(rows, 6))))",
    );
    load(&epsilon.file()).unwrap();
    let harm = shipped.replaced(CODE, b"return self.metadata", b"return torch.save(self, 1)");
    for changed in [wraps, epsilon, harm] {
        assert_eq!(play(&changed), play(&shipped));
    }
}

/// Tests tensors that the contract excludes, with the code checked and with any code allowed.
#[test]
fn tensors_that_are_not_plain_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.pt");
    let dense = Tensor::ones([3, 3], (Kind::Float, Device::Cpu));
    let quantised = dense.quantize_per_tensor(0.1, 0, Kind::QUInt8);
    for (odd, policy) in [
        (dense.to_sparse_sparse_dim(2), CodePolicy::Checked),
        (dense.to_sparse_sparse_dim(2), CodePolicy::Allowed),
        (quantised.shallow_clone(), CodePolicy::Checked),
        (quantised, CodePolicy::Allowed),
    ] {
        let mut module = BuiltModule::create("__torch__.Network");
        module.register_buffer("odd", &odd);
        module.define("def forward(self, x): return x");
        module.save(&path);
        let records = Records::read(&std::fs::read(&path).unwrap());
        let file = records.with(METADATA, GOOD.get(METADATA)).file();
        let error = open(&file, policy).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        let told = match policy {
            CodePolicy::Allowed => "its tensor `odd` is sparse, quantised",
            CodePolicy::Checked => "unsupported global `torch._utils._rebuild_",
        };
        assert!(error.contains(told), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Records are repacked after each change, so checksums do not reveal the change.
    #[test]
    fn changed_records_are_refused_or_harmless(
        record in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut records = GOOD.clone();
        let record = record.index(records.0.len());
        let bytes = &mut records.0[record].1;
        for (place, byte) in changes {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
        }
        if let Ok((module, metadata)) = open(&records.file(), CodePolicy::Checked) {
            prop_assert_eq!(metadata.hash, tensor_hash(module.tensors().unwrap()));
        }
    }

    #[test]
    fn changed_archives_are_read_without_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut file = GOOD.file();
        // The last eighth includes the directory, on which everything else depends.
        let directory = file.len() - file.len() / 8;
        for (place, byte) in changes {
            let place = directory + place.index(file.len() - directory);
            file[place] = byte;
        }
        let _ = open(&file, CodePolicy::Checked);
    }
}
