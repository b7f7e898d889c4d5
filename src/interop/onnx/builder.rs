//! Builds an ONNX graph, node by node.

use super::schema::{
    AttributeProto, AttributeType, DataType, Dimension, DimensionProto, GraphProto, ModelProto,
    NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    ValueInfoProto,
};
use crate::torch::{ExportPrecision, bytes};
use std::collections::{HashMap, HashSet};
use tch::{Kind, Tensor};

/// Returns an attribute with a list of integers.
pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        ints: values.to_vec(),
        ..attribute(name, AttributeType::Ints)
    }
}

/// Returns an attribute with one integer.
pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        i: value,
        ..attribute(name, AttributeType::Int)
    }
}

/// Returns an attribute with one float.
pub(super) fn float(name: &str, value: f64) -> AttributeProto {
    AttributeProto {
        f: value as f32,
        ..attribute(name, AttributeType::Float)
    }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: kind.into(),
        ..AttributeProto::default()
    }
}

/// Returns the ONNX dtype for a precision.
pub(super) fn data_type(precision: ExportPrecision) -> DataType {
    match precision {
        ExportPrecision::F32 => DataType::Float,
        ExportPrecision::Bf16 => DataType::Bfloat16,
        ExportPrecision::Fp16 => DataType::Float16,
    }
}

/// A graph under construction. Values are identified by their names.
pub(super) struct Builder {
    graph: GraphProto,
    /// The network's dtype, for casts.
    pub float: DataType,
    /// The constants so far, by content.
    constants: HashMap<Vec<u8>, String>,
    names: HashSet<String>,
}

impl Builder {
    /// Returns an empty graph that computes in the dtype of `precision`.
    pub fn new(precision: ExportPrecision) -> Builder {
        Builder {
            graph: GraphProto {
                name: "network".to_owned(),
                ..GraphProto::default()
            },
            float: data_type(precision),
            constants: HashMap::new(),
            names: HashSet::new(),
        }
    }

    /// Returns the version of the ONNX operator set: 17, which all Lc0 backends accept, or 22 for
    /// bfloat16, which convolutions and softplus do not support in earlier versions.
    fn operator_set(&self) -> i64 {
        match self.float {
            DataType::Bfloat16 => 22,
            _ => 17,
        }
    }

    /// Declares an input in the network's dtype, with the batch as its first dimension.
    pub fn input(&mut self, name: &str, shape: &[i64]) {
        let input = value_info(name, self.float, shape);
        self.names.insert(name.to_owned());
        self.graph.input.push(input);
    }

    /// Declares the value `from` as the output `name`.
    pub fn output(&mut self, name: &str, from: &str, shape: &[i64]) {
        let node = NodeProto {
            input: vec![from.to_owned()],
            output: vec![name.to_owned()],
            name: name.to_owned(),
            op_type: "Identity".to_owned(),
            ..NodeProto::default()
        };
        self.graph.node.push(node);
        let output = value_info(name, self.float, shape);
        self.graph.output.push(output);
    }

    /// Adds a node with one output and returns that output's name.
    pub fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
    ) -> String {
        self.node_with(operator, inputs, attributes, 1).remove(0)
    }

    /// Adds a node and returns the names of its outputs.
    pub fn node_with(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
        outputs: usize,
    ) -> Vec<String> {
        let name = format!("{operator}_{}", self.graph.node.len());
        let output = match outputs {
            1 => vec![name.clone()],
            _ => (0..outputs).map(|i| format!("{name}_{i}")).collect(),
        };
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output: output.clone(),
            name,
            op_type: operator.to_owned(),
            attribute: attributes,
            domain: String::new(),
        });
        output
    }

    /// Adds a tensor under a unique name, which is `name` unless that name is already in use.
    /// Floating-point values are stored in the network's dtype.
    pub fn tensor(&mut self, name: &str, tensor: &Tensor) -> String {
        self.initializer(name, tensor, self.float)
    }

    /// Adds a number in the network's dtype.
    pub fn scalar(&mut self, value: f64) -> String {
        let tensor = Tensor::from(value);
        self.constant(format!("f{value}").into_bytes(), &tensor, self.float)
    }

    /// Adds a list of integers.
    pub fn integers(&mut self, values: &[i64]) -> String {
        let key = values.iter().flat_map(|value| value.to_le_bytes());
        let key = std::iter::once(b'l').chain(key).collect();
        self.constant(key, &Tensor::from_slice(values), self.float)
    }

    /// Adds a scalar integer.
    pub fn integer(&mut self, value: i64) -> String {
        let tensor = Tensor::from(value);
        self.constant(format!("i{value}").into_bytes(), &tensor, self.float)
    }

    /// Adds a number in single precision, regardless of the network's dtype.
    pub fn single(&mut self, value: f32) -> String {
        let tensor = Tensor::from(value);
        self.constant(format!("s{value}").into_bytes(), &tensor, DataType::Float)
    }

    fn constant(&mut self, key: Vec<u8>, tensor: &Tensor, float: DataType) -> String {
        if let Some(name) = self.constants.get(&key) {
            return name.clone();
        }
        let name = format!("constant_{}", self.constants.len());
        let name = self.initializer(&name, tensor, float);
        self.constants.insert(key, name.clone());
        name
    }

    fn initializer(&mut self, name: &str, tensor: &Tensor, float: DataType) -> String {
        let name = match self.names.contains(name) {
            false => name.to_owned(),
            true => format!("{name}_{}", self.names.len()),
        };
        let (kind, data_type) = match float {
            _ if !tensor.is_floating_point() => (Kind::Int64, DataType::Int64),
            DataType::Float16 => (Kind::Half, float),
            DataType::Bfloat16 => (Kind::BFloat16, float),
            _ => (Kind::Float, float),
        };
        self.names.insert(name.clone());
        self.graph.initializer.push(TensorProto {
            dims: tensor.size(),
            data_type: data_type.into(),
            name: name.clone(),
            raw_data: bytes(&tensor.to_kind(kind)),
            ..TensorProto::default()
        });
        name
    }

    /// Adds a mean or sum over `axes`.
    pub fn reduce(&mut self, operator: &str, input: &str, axes: &[i64], keep: bool) -> String {
        let keep = int("keepdims", i64::from(keep));
        // Since version 18, the axes of ReduceMean are an input instead of an attribute.
        if operator == "ReduceMean" && self.operator_set() < 18 {
            return self.node(operator, &[input], vec![ints("axes", axes), keep]);
        }
        let axes = self.integers(axes);
        self.node(operator, &[input, &axes], vec![keep])
    }

    /// Returns a model that contains the finished graph.
    pub fn finish(self) -> ModelProto {
        let version = self.operator_set();
        ModelProto {
            // The oldest format version that supports the operator set.
            ir_version: if version < 18 { 8 } else { 10 },
            producer_name: env!("CARGO_PKG_NAME").to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            graph: Some(self.graph),
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version,
            }],
            metadata_props: Vec::new(),
        }
    }
}

fn value_info(name: &str, kind: DataType, shape: &[i64]) -> ValueInfoProto {
    let size = |(index, &size): (usize, &i64)| DimensionProto {
        value: Some(match index {
            // For devices that require a fixed batch size, Lc0 sets the dimension of this name.
            0 => Dimension::Parameter("batch".to_owned()),
            _ => Dimension::Value(size),
        }),
    };
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorTypeProto {
                elem_type: kind.into(),
                shape: Some(TensorShapeProto {
                    dim: shape.iter().enumerate().map(size).collect(),
                }),
            }),
        }),
    }
}
