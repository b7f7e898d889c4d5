//! Network layers: matrix multiplications, convolutions and norms.

use super::{Call, Translator};
use crate::interop::onnx::builder::{float, int, ints};
use crate::interop::onnx::graph::Argument;
use crate::interop::onnx::schema::DataType;

impl Translator<'_> {
    /// Translates a layer and returns the output's name, or `None` for other operators.
    pub(super) fn layer(&mut self, call: &Call) -> Result<Option<String>, String> {
        Ok(Some(match call.name {
            "linear" => self.linear(call)?,
            "baddbmm" | "addmm" => {
                let factors = &call.arguments.first(3)?[1..];
                let product = self.operands(factors)?;
                let product = self.joined("MatMul", &product);
                let product = self.scaled(&product, call.arguments.get(4)?)?;
                let x = self.scaled(&call.x, call.arguments.get(3)?)?;
                self.builder.node("Add", &[&product, &x], vec![])
            }
            "scaled_dot_product_attention" => self.attention(call)?,
            "_convolution" => self.convolution(call)?,
            "softmax" | "log_softmax" => {
                let operator = ["Softmax", "LogSoftmax"][usize::from(call.name == "log_softmax")];
                let axis = int("axis", call.axis(1)?);
                self.builder.node(operator, &[&call.x], vec![axis])
            }
            "layer_norm" => self.layer_norm(call)?,
            "rms_norm" => self.rms_norm(call)?,
            "mean" | "sum" => {
                let axes = call.arguments.ints(1)?;
                let keep = call.arguments.bool(2)?;
                let operator = ["ReduceMean", "ReduceSum"][usize::from(call.name == "sum")];
                self.builder.reduce(operator, &call.x, &axes, keep)
            }
            _ => return Ok(None),
        }))
    }

    /// Translates a dense layer. Weights are stored in libtorch's layout; the ONNX runtime
    /// transposes them once, when it loads the model.
    fn linear(&mut self, call: &Call) -> Result<String, String> {
        let weight = self.operand(call.arguments.get(1)?)?;
        let weight = self.transposed(&weight, &[1, 0]);
        let product = self.builder.node("MatMul", &[&call.x, &weight], vec![]);
        match call.arguments.get(2)? {
            Argument::None => Ok(product),
            bias => {
                let bias = self.operand(bias)?;
                Ok(self.builder.node("Add", &[&product, &bias], vec![]))
            }
        }
    }

    /// Computes softmax(q · kᵀ · scale + bias) · v. The scale is applied first, because unscaled
    /// products overflow 16 bits.
    fn attention(&mut self, call: &Call) -> Result<String, String> {
        let arguments = call.arguments;
        if arguments.float(4)? != 0.0 || arguments.bool(5)? || arguments.bool(7)? {
            return Err("it drops out, is causal or groups its queries".to_owned());
        }
        let [.., _, width] = *call.shape else {
            return Err("its shape is not known".to_owned());
        };
        let scale = match arguments.get(6)? {
            Argument::None => 1.0 / (width as f64).sqrt(),
            _ => arguments.float(6)?,
        };
        let query = self.scaled(&call.x, &Argument::Float(scale))?;
        let key = self.operand(arguments.get(1)?)?;
        let mut turned: Vec<i64> = (0..call.rank()).collect();
        turned.swap(call.shape.len() - 2, call.shape.len() - 1);
        let key = self.transposed(&key, &turned);
        let mut logits = self.builder.node("MatMul", &[&query, &key], vec![]);
        match arguments.get(3)? {
            Argument::None => {}
            mask if !self.is_floating(mask) => return Err("its mask is boolean".to_owned()),
            bias => {
                let bias = self.operand(bias)?;
                logits = self.builder.node("Add", &[&logits, &bias], vec![]);
            }
        }
        let weights = self
            .builder
            .node("Softmax", &[&logits], vec![int("axis", -1)]);
        let value = self.operand(arguments.get(2)?)?;
        Ok(self.builder.node("MatMul", &[&weights, &value], vec![]))
    }

    fn convolution(&mut self, call: &Call) -> Result<String, String> {
        if call.arguments.bool(6)? {
            return Err("it is transposed".to_owned());
        }
        let kernel = call.arguments.get(1)?;
        let mut inputs = vec![call.x.clone(), self.operand(kernel)?];
        if !matches!(call.arguments.get(2)?, Argument::None) {
            inputs.push(self.operand(call.arguments.get(2)?)?);
        }
        let size = self.shape(kernel).get(2..).unwrap_or_default();
        // libtorch accepts a single value for both spatial dimensions.
        let both = |index| match call.arguments.ints(index)?[..] {
            [one] => Ok(vec![one; size.len()]),
            ref all => Ok::<Vec<i64>, String>(all.to_vec()),
        };
        let padding = both(4)?;
        let attributes = vec![
            ints("kernel_shape", size),
            ints("strides", &both(3)?),
            ints("pads", &[&padding[..], &padding[..]].concat()),
            ints("dilations", &both(5)?),
            int("group", call.arguments.int(8)?),
        ];
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        Ok(self.builder.node("Conv", &inputs, attributes))
    }

    fn layer_norm(&mut self, call: &Call) -> Result<String, String> {
        let weight = self.operand(call.arguments.get(2)?)?;
        let bias = self.operand(call.arguments.get(3)?)?;
        let attributes = vec![
            int("axis", -(call.arguments.ints(1)?.len() as i64)),
            float("epsilon", call.arguments.float(4)?),
        ];
        let inputs = [&call.x[..], &weight, &bias];
        Ok(self.builder.node("LayerNormalization", &inputs, attributes))
    }

    /// Computes x / √(mean of x² + ε) · weight, in single precision up to the division, because
    /// sums of squares overflow 16 bits.
    fn rms_norm(&mut self, call: &Call) -> Result<String, String> {
        let dimensions = call.arguments.ints(1)?.len() as i64;
        let axes: Vec<i64> = (-dimensions..0).collect();
        let epsilon = match call.arguments.get(3)? {
            Argument::None => f64::from(f32::EPSILON),
            _ => call.arguments.float(3)?,
        };
        let is_narrow = self.builder.float != DataType::Float;
        let wide = match is_narrow {
            true => self.cast(&call.x, DataType::Float),
            false => call.x.clone(),
        };
        let epsilon = self.builder.single(epsilon as f32);
        let square = self.builder.node("Mul", &[&wide, &wide], vec![]);
        let mean = self.builder.reduce("ReduceMean", &square, &axes, true);
        let mean = self.builder.node("Add", &[&mean, &epsilon], vec![]);
        let root = self.builder.node("Sqrt", &[&mean], vec![]);
        let mut normal = self.builder.node("Div", &[&wide, &root], vec![]);
        if is_narrow {
            let kind = self.builder.float;
            normal = self.cast(&normal, kind);
        }
        match call.arguments.get(2)? {
            Argument::None => Ok(normal),
            weight => {
                let weight = self.operand(weight)?;
                Ok(self.builder.node("Mul", &[&normal, &weight], vec![]))
            }
        }
    }
}
