//! Writes checkpoints as `torch.save` does: a zip archive of a pickle and tensor storages.

use super::Parameter;
use half::{bf16, f16};
use std::io::{Cursor, Write};
use zip::write::FileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The dtype of the parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    Float,
    Double,
    Half,
    BFloat16,
    Long,
}

/// A checkpoint and the variant of the format in which it is written.
#[derive(Clone)]
pub struct Checkpoint<'a> {
    pub parameters: &'a [Parameter],
    pub numbers: Numbers,
    /// Prefix of every name.
    pub prefix: &'a str,
    /// Whether the dictionary is nested in another, as `model_state_dict`.
    pub is_nested: bool,
    /// Whether names contain `smolgen` in place of `gab`.
    pub is_old: bool,
    /// Whether matrices are stored column by column.
    pub is_transposed: bool,
    /// Whether all tensors lie one after the other in a single storage.
    pub is_joined: bool,
    /// Whether tensors are wrapped as parameters, as they are in modules.
    pub has_parameters: bool,
    /// Whether each layer repeats the shared generator under its own name.
    pub has_copies: bool,
    pub byte_order: Option<&'a str>,
    pub compression: CompressionMethod,
    /// Additional entries of the archive.
    pub extra: &'a [(&'a str, &'a [u8])],
}

/// A tensor's place in its storage.
#[derive(Clone)]
struct Placed {
    name: String,
    storage: usize,
    storage_len: usize,
    offset: usize,
    shape: Vec<i64>,
    strides: Vec<usize>,
}

impl<'a> Checkpoint<'a> {
    pub fn new(parameters: &'a [Parameter]) -> Checkpoint<'a> {
        Checkpoint {
            parameters,
            numbers: Numbers::Float,
            prefix: "",
            is_nested: false,
            is_old: false,
            is_transposed: false,
            is_joined: false,
            has_parameters: false,
            has_copies: true,
            byte_order: Some("little"),
            compression: CompressionMethod::Stored,
            extra: &[],
        }
    }

    /// Returns the file.
    pub fn bytes(&self) -> Vec<u8> {
        let (placed, storages) = self.place();
        self.file(self.pickle(&placed), &storages)
    }

    /// Returns the pickle in the file.
    pub fn pickle_alone(&self) -> Vec<u8> {
        self.pickle(&self.place().0)
    }

    /// Returns the file with its pickle replaced.
    pub fn with_pickle(&self, pickle: Vec<u8>) -> Vec<u8> {
        self.file(pickle, &self.place().1)
    }

    /// Returns the file with all tensors at the beginning of the largest one's storage.
    pub fn with_one_storage_for_all(&self) -> Vec<u8> {
        let (mut placed, mut storages) = self.place();
        let largest = storages.iter().map(Vec::len).max().unwrap();
        storages.retain(|storage| storage.len() == largest);
        storages.truncate(1);
        for tensor in &mut placed {
            (tensor.storage, tensor.offset, tensor.storage_len) = (0, 0, largest);
        }
        self.file(self.pickle(&placed), &storages)
    }

    /// Returns the file with storages that claim the size that the shapes require.
    pub fn with_claimed_storages(&self) -> Vec<u8> {
        let (mut placed, storages) = self.place();
        for tensor in &mut placed {
            let numbers = tensor.shape.iter().product::<i64>();
            tensor.storage_len = numbers as usize;
            if let [_, columns] = tensor.shape[..] {
                tensor.strides = vec![columns as usize, 1];
            }
        }
        self.file(self.pickle(&placed), &storages)
    }

    fn file(&self, pickle: Vec<u8>, storages: &[Vec<f32>]) -> Vec<u8> {
        let mut entries = vec![("data.pkl".to_owned(), pickle)];
        if let Some(order) = self.byte_order {
            entries.push(("byteorder".to_owned(), order.into()));
        }
        for (key, storage) in storages.iter().enumerate() {
            entries.push((format!("data/{key}"), self.raw(storage)));
        }
        entries.push(("version".to_owned(), b"3\n".to_vec()));
        let extra = self.extra.iter();
        entries.extend(extra.map(|&(name, bytes)| (name.to_owned(), bytes.to_vec())));
        archive(&entries, self.compression)
    }

    fn place(&self) -> (Vec<Placed>, Vec<Vec<f32>>) {
        let mut placed: Vec<Placed> = Vec::new();
        let mut storages: Vec<Vec<f32>> = Vec::new();
        for (name, shape, values) in self.parameters {
            let sizes: Vec<usize> = shape.iter().map(|&size| size as usize).collect();
            let (strides, values) = match sizes[..] {
                [rows, columns] if self.is_transposed => {
                    let of = |place: usize| values[place % rows * columns + place / rows];
                    (vec![1, rows], (0..values.len()).map(of).collect())
                }
                [_, columns] => (vec![columns, 1], values.clone()),
                _ => (vec![1], values.clone()),
            };
            if storages.is_empty() || !self.is_joined {
                storages.push(Vec::new());
            }
            let storage = storages.len() - 1;
            placed.push(Placed {
                name: name.clone(),
                storage,
                storage_len: 0,
                offset: storages[storage].len(),
                shape: shape.clone(),
                strides,
            });
            storages[storage].extend(values);
        }
        if self.has_copies {
            let of = |wanted: &str| placed.iter().find(|p| p.name == wanted).cloned();
            let shared = of("gab_shared_weight");
            let layer = |number| format!("transformer.layers.{number}");
            let layers =
                (0..).take_while(|number| of(&(layer(*number) + ".norm1.weight")).is_some());
            let copies: Vec<Placed> = shared
                .iter()
                .flat_map(|shared| {
                    layers.clone().map(|number| Placed {
                        name: layer(number) + ".self_attn.gab_weight",
                        ..shared.clone()
                    })
                })
                .collect();
            placed.extend(copies);
        }
        for tensor in &mut placed {
            tensor.storage_len = storages[tensor.storage].len();
            if self.is_old {
                tensor.name = tensor.name.replace("gab", "smolgen");
            }
            tensor.name.insert_str(0, self.prefix);
        }
        (placed, storages)
    }

    fn raw(&self, values: &[f32]) -> Vec<u8> {
        let bytes = |value: &f32| match self.numbers {
            Numbers::Float => value.to_le_bytes().to_vec(),
            Numbers::Double => f64::from(*value).to_le_bytes().to_vec(),
            Numbers::Half => f16::from_f32(*value).to_le_bytes().to_vec(),
            Numbers::BFloat16 => bf16::from_f32(*value).to_le_bytes().to_vec(),
            Numbers::Long => (*value as i64).to_le_bytes().to_vec(),
        };
        values.iter().flat_map(bytes).collect()
    }

    fn pickle(&self, placed: &[Placed]) -> Vec<u8> {
        let mut pickle = Pickle(b"\x80\x02".to_vec());
        if self.is_nested {
            pickle.raw(b"}q\x00(");
            pickle.text("epoch").raw(b"K\x07");
            pickle
                .text("loss")
                .raw(b"G\x3f\xf8\x00\x00\x00\x00\x00\x00");
            pickle.text("scheduler").raw(b"}");
            pickle.text("model_state_dict");
        }
        pickle.raw(b"ccollections\nOrderedDict\nq\x01)R(");
        for tensor in placed {
            pickle.text(&tensor.name);
            if self.has_parameters {
                pickle.raw(b"ctorch._utils\n_rebuild_parameter\n(");
            }
            self.tensor(&mut pickle, tensor);
            if self.has_parameters {
                pickle.raw(b"\x88h\x01)RtR");
            }
        }
        // The modules' versions, stored as an attribute.
        pickle.raw(b"u}").text("_metadata");
        pickle.raw(b"h\x01)R").text("").raw(b"}").text("version");
        pickle.raw(b"K\x01sssb");
        if self.is_nested {
            pickle.raw(b"u");
        }
        pickle.raw(b".");
        pickle.0
    }

    fn tensor(&self, pickle: &mut Pickle, tensor: &Placed) {
        let class = match self.numbers {
            Numbers::Float => "Float",
            Numbers::Double => "Double",
            Numbers::Half => "Half",
            Numbers::BFloat16 => "BFloat16",
            Numbers::Long => "Long",
        };
        pickle
            .raw(b"ctorch._utils\n_rebuild_tensor_v2\n((")
            .text("storage");
        pickle.raw(format!("ctorch\n{class}Storage\n").as_bytes());
        pickle.text(&tensor.storage.to_string()).text("cpu");
        pickle.number(tensor.storage_len as i64).raw(b"tQ");
        pickle.number(tensor.offset as i64).raw(b"(");
        for &size in &tensor.shape {
            pickle.number(size);
        }
        pickle.raw(b"t(");
        for &stride in &tensor.strides {
            pickle.number(stride as i64);
        }
        pickle.raw(b"t\x89h\x01)RtR");
    }
}

/// A pickle being written.
pub struct Pickle(pub Vec<u8>);

impl Pickle {
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Pickle {
        self.0.extend(bytes);
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Pickle {
        self.raw(b"X");
        self.raw(&(text.len() as u32).to_le_bytes())
            .raw(text.as_bytes())
    }

    pub fn number(&mut self, number: i64) -> &mut Pickle {
        match i32::try_from(number) {
            Ok(number) => self.raw(b"J").raw(&number.to_le_bytes()),
            Err(_) => self.raw(b"\x8a\x08").raw(&number.to_le_bytes()),
        }
    }
}

/// Returns an archive of entries in one folder.
pub fn archive(entries: &[(String, Vec<u8>)], compression: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = FileOptions::default().compression_method(compression);
    for (name, bytes) in entries {
        zip.start_file(format!("maia3/{name}"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}
