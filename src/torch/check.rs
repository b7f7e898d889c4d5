//! Checks a network file before any code in it runs.
//!
//! A TorchScript file is a program: `torch::jit::load` runs the `__setstate__` methods of its
//! classes, and `meta` and `forward` are also code in the file. libtorch trusts the file. It
//! accepts pickles that describe tensors outside their storages, and its parser recurses as deeply
//! as brackets are nested. Therefore this module reads the archive without libtorch, and accepts
//! only files that our exporters could have written:
//!
//! - The records are those of a network file, and the unpacked size of each record is within
//!   bounds.
//! - The code assigns the results of listed operators, without branches, loops or unknown methods
//!   (`code`).
//! - The pickle creates one object of the code's classes, with dense tensors that lie within their
//!   storages (`pickle`).
//!
//! libtorch then receives an archive that has been rewritten from the checked records, so it cannot
//! interpret the file differently.

mod code;
mod operators;
mod pickle;
mod tokens;

pub use operators::{ARGUMENTS, OPERATORS};

use super::archive::{Archive, ArchiveError};
use crate::backend::metadata::RECORD;
use std::borrow::Cow;
use std::io::{Cursor, Write};
use zip::write::FileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Maximum size of the code in bytes, which is ten times that of a network with 11 layers.
const MOST_CODE: usize = 1 << 20;
/// Maximum size of a pickle in bytes. A pickle of this size can describe thousands of tensors.
pub(super) const MOST_PICKLE: usize = 2 << 20;
/// Maximum size of the metadata in bytes.
const MOST_METADATA: usize = 64 << 20;
/// Maximum size in bytes of a record that contains a single value.
const MOST_VALUE: usize = 16;
/// Maximum number of characters that a message quotes from a file.
const LONGEST_EXCERPT: usize = 60;

/// The record that contains all code.
const CODE: &str = "code/__torch__.py";
/// The record that contains the network.
const DATA: &str = "data.pkl";
/// The record that contains tensors used as constants in the code.
const CONSTANTS: &str = "constants.pkl";
/// The contents of the constants record if there are no constants: an empty tuple.
const NO_CONSTANTS: &[u8] = b"\x80\x02).";
/// The record of the format version: `version` below version 6, and `.data/version` from version 6
/// on. libtorch writes the version that the file's operators require.
const VERSIONS: [&str; 2] = ["version", ".data/version"];
/// The byte-order record.
const BYTE_ORDER: &str = "byteorder";

/// Why a network file is rejected. Each variant describes something that our exporters do not
/// write.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A record has an unknown name.
    #[error("unexpected record `{0}` in its archive")]
    Record(String),
    /// Several records have the same name, which parsers treat differently.
    #[error("duplicate record names in its archive")]
    Duplicate,
    /// A record is too long once unpacked.
    #[error("record `{0}` is too large")]
    Large(String),
    /// A tensor record is compressed, or another record is compressed with an unusual method.
    #[error("record `{0}` is compressed")]
    Compressed(String),
    /// A record has unexpected contents.
    #[error("record `{0}` has unexpected contents")]
    Contents(&'static str),
    /// The code contains a byte that never occurs in exported code.
    #[error("unexpected character 0x{0:02x} in its code")]
    Character(u8),
    /// Brackets or objects are nested too deeply.
    #[error("nested more than {0} deep")]
    Nested(usize),
    /// There are too many calls.
    #[error("more than {0} calls in its code")]
    Long(usize),
    /// The code uses an unsupported keyword or builtin.
    #[error("unsupported keyword `{0}` in its code")]
    Word(String),
    /// The code calls an operator that is not in [`OPERATORS`].
    #[error("unsupported operator `{0}`")]
    Call(String),
    /// The code names an argument that is not in [`ARGUMENTS`].
    #[error("unsupported argument `{0}` in its code")]
    Argument(String),
    /// The code defines a method with an unknown name.
    #[error("unsupported method `{0}`")]
    Method(String),
    /// A line of code has an unknown form.
    #[error("unsupported line `{0}` in its code")]
    Line(String),
    /// A pickle names an unknown callable or class.
    #[error("unsupported global `{0}` in its pickle")]
    Global(String),
    /// A pickle contains an unknown operation.
    #[error("unsupported opcode 0x{0:02x} in its pickle")]
    Operation(u8),
    /// A pickle is inconsistent.
    #[error("malformed pickle at byte {0}")]
    Senseless(usize),
    /// A tensor lies outside its storage.
    #[error("a tensor lies outside of its storage")]
    Bounds,
    /// The attributes of an object differ from those that its class declares.
    #[error("an object of `{0}` has different attributes from those that its class declares")]
    Attributes(String),
    /// The size of a storage differs from the size of its record.
    #[error("record `data/{0}` does not have the size that its pickle states")]
    Storage(String),
}

/// Why a file is not loaded.
#[derive(Debug)]
pub(super) enum CheckError {
    /// The file is not the archive of a network, or is damaged.
    Archive(ArchiveError),
    /// Our exporters do not write such a file.
    Refused(Refusal),
}

impl From<ArchiveError> for CheckError {
    fn from(error: ArchiveError) -> CheckError {
        match error {
            ArchiveError::Large(name) => Refusal::Large(name).into(),
            ArchiveError::Compressed(name) => Refusal::Compressed(name).into(),
            other => CheckError::Archive(other),
        }
    }
}

impl From<Refusal> for CheckError {
    fn from(refusal: Refusal) -> CheckError {
        CheckError::Refused(refusal)
    }
}

/// Checks the archive of a network file and returns a rewritten archive for libtorch.
///
/// # Errors
/// [`CheckError`] if the file is damaged or our exporters do not write such files.
pub(super) fn check(mut archive: Archive) -> Result<Vec<u8>, CheckError> {
    let names = archive.names();
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        return Err(Refusal::Record(excerpt(name)).into());
    }
    if names.len() != archive.len() {
        return Err(Refusal::Duplicate.into());
    }
    let version_name = VERSIONS[usize::from(archive.has(VERSIONS[1]))];
    let version = archive.unpacked(version_name, MOST_VALUE)?;
    if !version.trim_ascii().iter().all(u8::is_ascii_digit) {
        return Err(Refusal::Contents(version_name).into());
    }
    if archive.has(BYTE_ORDER) && *archive.unpacked(BYTE_ORDER, MOST_VALUE)? != *b"little" {
        return Err(Refusal::Contents(BYTE_ORDER).into());
    }
    if *archive.unpacked(CONSTANTS, MOST_PICKLE)? != *NO_CONSTANTS {
        return Err(Refusal::Contents(CONSTANTS).into());
    }
    let code = archive.unpacked(CODE, MOST_CODE)?;
    let classes = code::read(&code)?;
    let data = archive.unpacked(DATA, MOST_PICKLE)?;
    let storages = pickle::read(&data, &classes)?;
    metadata(&mut archive)?;
    let mut records = vec![
        (version_name.to_owned(), version),
        (CONSTANTS.to_owned(), NO_CONSTANTS.into()),
        (CODE.to_owned(), code),
        (DATA.to_owned(), Cow::Borrowed(&*data)),
    ];
    for (key, size) in storages {
        let name = format!("data/{key}");
        let storage = archive.entry(&name)?;
        if storage.len() != size {
            return Err(Refusal::Storage(key.to_owned()).into());
        }
        records.push((name, storage.into()));
    }
    Ok(packed(&records, archive.size())?)
}

/// Returns the metadata record of a file, without checking the rest of the file.
///
/// # Errors
/// [`ArchiveError`] if the record is damaged.
pub(super) fn metadata(archive: &mut Archive) -> Result<Option<String>, ArchiveError> {
    let name = format!("extra/{RECORD}");
    if !archive.has(&name) {
        return Ok(None);
    }
    let metadata = archive.unpacked(&name, MOST_METADATA)?;
    let metadata = String::from_utf8(metadata.into_owned());
    metadata.map(Some).map_err(|_| ArchiveError::Damaged(name))
}

/// Returns whether a record of a network file can have this name.
fn is_known(name: &str) -> bool {
    let is_storage = |key: &str| key.bytes().all(|byte| byte.is_ascii_digit());
    match name {
        CODE | DATA | CONSTANTS | BYTE_ORDER => true,
        _ if VERSIONS.contains(&name) => true,
        // libtorch needs neither the code's source lines nor the archive's identifier.
        "code/__torch__.py.debug_pkl" | ".data/serialization_id" => true,
        _ => match name.split_once('/') {
            Some(("data", key)) => is_storage(key),
            Some(("extra", name)) => name == RECORD,
            _ => false,
        },
    }
}

/// Packs records into an archive for libtorch.
fn packed(records: &[(String, Cow<[u8]>)], capacity: usize) -> Result<Vec<u8>, ArchiveError> {
    let write = || {
        let mut zip = ZipWriter::new(Cursor::new(Vec::with_capacity(capacity)));
        let options = FileOptions::default().compression_method(CompressionMethod::Stored);
        for (name, bytes) in records {
            zip.start_file(format!("network/{name}"), options)?;
            zip.write_all(bytes)?;
        }
        Ok(zip.finish()?.into_inner())
    };
    write().map_err(|error: zip::result::ZipError| ArchiveError::Directory(error.to_string()))
}

/// Returns the beginning of a string from a file, formatted for a one-line message.
fn excerpt(text: &str) -> String {
    let shown = text.chars().flat_map(char::escape_debug);
    match text.chars().count() > LONGEST_EXCERPT {
        true => shown.take(LONGEST_EXCERPT).chain("…".chars()).collect(),
        false => shown.collect(),
    }
}
