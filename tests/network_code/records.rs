//! Accesses the records of a network file, which tests change one by one.

use std::io::{Cursor, Read, Write};
use zip::write::FileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Names and contents, without the archive's folder.
#[derive(Clone)]
pub struct Records(pub Vec<(String, Vec<u8>)>);

impl Records {
    pub fn read(file: &[u8]) -> Records {
        let mut archive = ZipArchive::new(Cursor::new(file)).unwrap();
        let count = archive.len();
        let record = |index| {
            let mut entry = archive.by_index(index).unwrap();
            let (_, name) = entry.name().split_once('/').unwrap();
            let (name, mut bytes) = (name.to_owned(), Vec::new());
            entry.read_to_end(&mut bytes).unwrap();
            (name, bytes)
        };
        Records((0..count).map(record).collect())
    }

    pub fn get(&self, name: &str) -> &[u8] {
        &self.0.iter().find(|record| record.0 == name).unwrap().1
    }

    /// Returns a copy in which one record is replaced.
    pub fn with(&self, name: &str, bytes: impl Into<Vec<u8>>) -> Records {
        let mut records = self.clone();
        records.0.retain(|record| record.0 != name);
        records.0.push((name.to_owned(), bytes.into()));
        records
    }

    /// Returns a copy in which part of one record is replaced.
    pub fn replaced(&self, name: &str, from: &[u8], to: &[u8]) -> Records {
        let (mut rest, mut bytes) = (self.get(name), Vec::new());
        while let Some(at) = rest.windows(from.len()).position(|part| part == from) {
            bytes.extend_from_slice(&rest[..at]);
            bytes.extend_from_slice(to);
            rest = &rest[at + from.len()..];
        }
        assert!(!bytes.is_empty(), "{name} has no such part");
        bytes.extend_from_slice(rest);
        self.with(name, bytes)
    }

    /// Returns the file.
    pub fn file(&self) -> Vec<u8> {
        self.file_with("", 0)
    }

    /// Returns the file with an additional record `name`, which contains this many mebibytes of
    /// empty lines, compressed.
    pub fn file_with(&self, name: &str, mebibytes: usize) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = FileOptions::default();
        let stored = options.compression_method(CompressionMethod::Stored);
        for (name, bytes) in &self.0 {
            zip.start_file(format!("net/{name}"), stored).unwrap();
            zip.write_all(bytes).unwrap();
        }
        if mebibytes > 0 {
            let deflated = options.compression_method(CompressionMethod::Deflated);
            zip.start_file(format!("net/{name}"), deflated).unwrap();
            let lines = vec![b'\n'; 1 << 20];
            for _ in 0..mebibytes {
                zip.write_all(&lines).unwrap();
            }
        }
        zip.finish().unwrap().into_inner()
    }
}
