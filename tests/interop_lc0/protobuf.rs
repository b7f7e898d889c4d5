//! A minimal protobuf reader and writer, independent of the program's own: messages as lists of
//! numbered fields.

/// A message: its length-delimited fields, and its varints.
#[derive(Clone, Default)]
pub struct Message {
    fields: Vec<(u32, Vec<u8>)>,
    numbers: Vec<(u32, u64)>,
    floats: Vec<(u32, f32)>,
}

impl Message {
    pub fn parse(mut bytes: &[u8]) -> Message {
        let mut message = Message::default();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let tag = (key >> 3) as u32;
            match key & 7 {
                0 => message.numbers.push((tag, varint(&mut bytes))),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    message.fields.push((tag, bytes[..length].to_vec()));
                    bytes = &bytes[length..];
                }
                5 => {
                    let float = f32::from_le_bytes(bytes[..4].try_into().unwrap());
                    message.floats.push((tag, float));
                    bytes = &bytes[4..];
                }
                other => panic!("wire type {other}"),
            }
        }
        message
    }

    /// Returns all messages in a field.
    pub fn all(&self, tag: u32) -> Vec<Message> {
        let fields = self.fields.iter().filter(|field| field.0 == tag);
        fields.map(|(_, bytes)| Message::parse(bytes)).collect()
    }

    pub fn get(&self, tag: u32) -> Option<Message> {
        self.all(tag).pop()
    }

    /// Returns the message in a field, which must exist.
    pub fn at(&self, tag: u32) -> Message {
        self.get(tag).unwrap_or_else(|| panic!("no field {tag}"))
    }

    pub fn number(&self, tag: u32) -> u64 {
        let mut numbers = self.numbers.iter();
        numbers
            .find(|number| number.0 == tag)
            .map_or(0, |number| number.1)
    }

    fn float(&self, tag: u32) -> f64 {
        let mut floats = self.floats.iter();
        floats
            .find(|float| float.0 == tag)
            .map_or(0.0, |float| float.1.into())
    }

    /// Returns the values of the layer in a field, or an empty list if the layer is missing.
    pub fn tensor(&self, tag: u32) -> Vec<f64> {
        let Some(layer) = self.get(tag) else {
            return Vec::new();
        };
        let (min, max) = (layer.float(1), layer.float(2));
        let params = &layer.fields.iter().find(|field| field.0 == 3).unwrap().1;
        let words = params
            .chunks_exact(2)
            .map(|two| u16::from_le_bytes([two[0], two[1]]));
        match layer.number(4) {
            0 | 1 => words
                .map(|word| min + (max - min) * f64::from(word) / 65535.0)
                .collect(),
            2 => words
                .map(|word| half::f16::from_bits(word).into())
                .collect(),
            3 => words
                .map(|word| half::bf16::from_bits(word).into())
                .collect(),
            _ => {
                let floats = params.chunks_exact(4);
                floats
                    .map(|four| f64::from(f32::from_le_bytes(four.try_into().unwrap())))
                    .collect()
            }
        }
    }

    pub fn set(&mut self, tag: u32, message: &Message) {
        self.fields.push((tag, message.bytes()));
    }

    pub fn set_number(&mut self, tag: u32, number: u64) {
        self.numbers.push((tag, number));
    }

    pub fn set_float(&mut self, tag: u32, float: f32) {
        self.floats.push((tag, float));
    }

    pub fn set_bytes(&mut self, tag: u32, bytes: Vec<u8>) {
        self.fields.push((tag, bytes));
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &(tag, float) in &self.floats {
            put_varint(u64::from(tag) << 3 | 5, &mut bytes);
            bytes.extend(float.to_le_bytes());
        }
        for &(tag, number) in &self.numbers {
            put_varint(u64::from(tag) << 3, &mut bytes);
            put_varint(number, &mut bytes);
        }
        for (tag, field) in &self.fields {
            put_varint(u64::from(*tag) << 3 | 2, &mut bytes);
            put_varint(field.len() as u64, &mut bytes);
            bytes.extend(field);
        }
        bytes
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

fn put_varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
