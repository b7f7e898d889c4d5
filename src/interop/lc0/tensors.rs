//! Reads and writes the tensors of a weights file under our names, with one table for both
//! directions.

mod table;

use super::container::fields;
use super::schema::Layer;
use super::{Lc0Error, sizes::Sizes};
use prost::Message as Protobuf;
use prost::bytes::Bytes;
use prost::encoding::{bytes, decode_varint, message, uint32};
use std::collections::BTreeMap;
use table::{Field, Message, WEIGHTS};

/// Maximum number of fields in a file, more than any network has. The limit is necessary because a
/// field of a few bytes takes hundreds of bytes in memory.
const MOST_FIELDS: usize = 10_000;

/// Tensors by our names, the number of occurrences of each repeated message, and the value of each
/// numeric field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tensors {
    pub layers: BTreeMap<String, Layer>,
    pub numbers: BTreeMap<String, u32>,
}

impl Tensors {
    /// Reads the tensors of a message.
    ///
    /// # Errors
    /// [`Lc0Error`] if the message is damaged or has too many fields.
    pub fn read(file: &Bytes) -> Result<Tensors, Lc0Error> {
        let mut tensors = Tensors::default();
        let mut left = MOST_FIELDS;
        tensors.decode(WEIGHTS, "", file, file, &mut left)?;
        Ok(tensors)
    }

    fn decode(
        &mut self,
        table: Message,
        path: &str,
        within: &[u8],
        file: &Bytes,
        left: &mut usize,
    ) -> Result<(), Lc0Error> {
        fields(within, &mut |tag, mut content| {
            *left = left.checked_sub(1).ok_or(Lc0Error::TooManyLayers)?;
            let known = table.iter().find(|(number, _, field)| match field {
                Field::Pair => [*number, number + 1].contains(&tag),
                _ => *number == tag,
            });
            let Some((number, name, field)) = known else {
                return Ok(());
            };
            let path = joined(path, name);
            let place = match field {
                Field::Tensor => path,
                Field::Pair => joined(&path, PARTS[(tag - number) as usize]),
                Field::Number => {
                    self.numbers
                        .insert(path, decode_varint(&mut content)? as u32);
                    return Ok(());
                }
                Field::One(table) => return self.decode(table, &path, content, file, left),
                Field::Many(table) => {
                    let count = self.numbers.entry(path.clone()).or_default();
                    let path = joined(&path, &count.to_string());
                    *count += 1;
                    return self.decode(table, &path, content, file, left);
                }
            };
            let layer = <Layer as Protobuf>::decode(file.slice_ref(content))?;
            self.layers.insert(place, layer);
            Ok(())
        })
    }

    /// Returns the tensors as a message.
    pub fn write(mut self) -> Bytes {
        self.encode(WEIGHTS, "").into()
    }

    fn encode(&mut self, table: Message, path: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for &(tag, name, ref field) in table {
            let path = joined(path, name);
            match field {
                Field::Tensor => self.put(tag, &path, &mut out),
                Field::Pair => {
                    for (tag, part) in (tag..).zip(PARTS) {
                        self.put(tag, &joined(&path, part), &mut out);
                    }
                }
                Field::Number => {
                    if let Some(number) = self.numbers.get(&path) {
                        uint32::encode(tag, number, &mut out);
                    }
                }
                Field::One(table) => nest(tag, self.encode(table, &path), &mut out),
                Field::Many(table) => {
                    for index in 0..self.number(&path) {
                        let path = joined(&path, &index.to_string());
                        nest(tag, self.encode(table, &path), &mut out);
                    }
                }
            }
        }
        out
    }

    fn put(&mut self, tag: u32, name: &str, out: &mut Vec<u8>) {
        if let Some(layer) = self.layers.remove(name) {
            message::encode(tag, &layer, out);
        }
    }

    /// Returns whether any tensor exists below a path, which must end with a dot.
    pub fn has_any(&self, path: &str) -> bool {
        let mut from = self.layers.range(path.to_owned()..);
        from.next().is_some_and(|(name, _)| name.starts_with(path))
    }

    /// Moves all tensors below one path to another, except those whose new name already exists.
    pub fn rename(&mut self, from: &str, to: &str) {
        moved(&mut self.layers, from, to);
        moved(&mut self.numbers, from, to);
    }

    /// Removes everything below a path.
    pub fn remove(&mut self, path: &str) {
        self.layers.retain(|name, _| !name.starts_with(path));
        self.numbers.retain(|name, _| !name.starts_with(path));
    }
}

impl Sizes for Tensors {
    fn count(&self, name: &str) -> i64 {
        self.layers.get(name).map_or(0, Layer::count)
    }

    fn number(&self, name: &str) -> i64 {
        self.numbers.get(name).copied().unwrap_or_default().into()
    }
}

/// The names of the two tensors of a pair.
const PARTS: [&str; 2] = ["weight", "bias"];

fn joined(path: &str, name: &str) -> String {
    match (path, name) {
        ("", name) => name.to_owned(),
        (path, "") => path.to_owned(),
        (path, name) => format!("{path}.{name}"),
    }
}

/// Nests a message in another, unless it is empty.
fn nest(tag: u32, inner: Vec<u8>, out: &mut Vec<u8>) {
    if !inner.is_empty() {
        bytes::encode(tag, &inner, out);
    }
}

fn moved<T>(map: &mut BTreeMap<String, T>, from: &str, to: &str) {
    let names: Vec<String> = map
        .keys()
        .filter(|name| name.starts_with(from))
        .cloned()
        .collect();
    for name in names {
        if let Some(value) = map.remove(&name) {
            map.entry(name.replacen(from, to, 1)).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_empty_layers_is_refused() {
        let flood = |count| Tensors::read(&[0x12, 0].repeat(count).into());
        assert_eq!(flood(MOST_FIELDS).unwrap().number("body"), 10_000);
        let error = flood(MOST_FIELDS + 1).unwrap_err();
        assert!(matches!(error, Lc0Error::TooManyLayers));
    }

    #[test]
    fn a_message_is_written_as_it_was_read() {
        let layer = Layer {
            min_val: Some(1.0),
            ..Layer::default()
        };
        let names = ["body.0.squeeze.bias", "policy.soft.conv1.weight", "heads"];
        let tensors = Tensors {
            layers: names[..2]
                .iter()
                .map(|&name| (name.to_owned(), layer.clone()))
                .collect(),
            numbers: [("body".to_owned(), 1), ("heads".to_owned(), 3)].into(),
        };
        assert_eq!(Tensors::read(&tensors.clone().write()).unwrap(), tensors);
    }
}
