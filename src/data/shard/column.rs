//! One column of a block: a sequence of values.

/// Why a block cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// A column ends before the last move.
    #[error("column {0} ends too early")]
    Short(usize),
    /// A column continues after the last move.
    #[error("column {0} is too long")]
    Long(usize),
    /// The column cannot be decompressed.
    #[error("column {column} does not decompress: {source}")]
    Compression {
        /// The column, from 0.
        column: usize,
        /// The decompressor's error.
        source: std::io::Error,
    },
    /// A value is out of range.
    #[error("column {0} holds a value out of range")]
    Range(usize),
}

/// The unread part of a column.
pub(super) struct Column<'a> {
    pub(super) number: usize,
    pub(super) rest: &'a [u8],
}

impl<'a> Column<'a> {
    pub(super) fn out_of_range(&self) -> ColumnError {
        ColumnError::Range(self.number)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], ColumnError> {
        let split = self.rest.split_at_checked(length);
        let (taken, rest) = split.ok_or(ColumnError::Short(self.number))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ColumnError> {
        Ok(self.take(1)?[0])
    }

    /// Reads an integer in groups of seven bits, lowest group first.
    pub(super) fn varint(&mut self) -> Result<u64, ColumnError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.out_of_range())
    }

    /// Reads a length, which is not yet checked against the number of remaining bytes.
    pub(super) fn length(&mut self) -> Result<usize, ColumnError> {
        let length = self.varint()?;
        usize::try_from(length).map_err(|_| self.out_of_range())
    }

    pub(super) fn signed(&mut self) -> Result<i64, ColumnError> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

/// Maps a signed integer to an unsigned one, so that integers near zero become small.
pub(super) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Appends an integer in groups of seven bits, lowest group first.
pub(super) fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
