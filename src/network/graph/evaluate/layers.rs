//! What networks are made of: products, convolutions, norms.

use super::{Evaluation, Reason, broadcast, dimension, text};
use tch::{Kind, Tensor};

impl Evaluation<'_> {
    /// The output, if the operator is one of these.
    pub(super) fn layer(&mut self, operator: &str) -> Result<Option<Tensor>, Reason> {
        Ok(Some(match operator {
            "MatMul" => {
                let (left, right) = (self.tensor(0)?, self.tensor(1)?);
                self.product(&left, &right)?
            }
            "Gemm" => self.general_product()?,
            "Conv" => self.convolution()?,
            "LayerNormalization" => self.layer_norm()?,
            "GlobalAveragePool" => {
                let x = self.tensor(0)?;
                self.budget.reserve(&x.size())?;
                x.f_mean_dim([2i64, 3].as_slice(), true, None::<Kind>)?
            }
            "ReduceMean" | "ReduceSum" => {
                let x = self.tensor(0)?;
                self.budget.reserve(&x.size())?;
                let Some(axes) = self.ints_or_input("axes", 1)? else {
                    return text("it names no axes");
                };
                let keep = self.int("keepdims", 1)? != 0;
                match operator {
                    "ReduceMean" => x.f_mean_dim(axes.as_slice(), keep, None::<Kind>)?,
                    _ => x.f_sum_dim_intlist(axes.as_slice(), keep, None::<Kind>)?,
                }
            }
            _ => return Ok(None),
        }))
    }

    /// The matrix product, once it is known to fit and to be affordable.
    fn product(&mut self, left: &Tensor, right: &Tensor) -> Result<Tensor, Reason> {
        let (l, r) = (left.size(), right.size());
        let ([l_batch @ .., rows, terms], [r_batch @ .., also_terms, columns]) = (&l[..], &r[..])
        else {
            return text(format!("{l:?} and {r:?} are no matrices"));
        };
        if terms != also_terms {
            return text(format!("{l:?} and {r:?} do not fit"));
        }
        let mut shape = broadcast(l_batch, r_batch)?;
        // libtorch may copy what it repeats.
        let copied = [&shape[..], &[*terms, rows + columns]].concat();
        self.budget.reserve(&copied)?;
        self.budget.release(&copied);
        shape.extend([*rows, *columns]);
        self.budget.reserve(&shape)?;
        self.budget.multiply(&shape, *terms)?;
        Ok(left.f_matmul(right)?)
    }

    fn general_product(&mut self) -> Result<Tensor, Reason> {
        let side = |index, name| {
            let tensor = self.tensor(index)?;
            match (tensor.dim(), self.int(name, 0)?) {
                (2, 0) => Ok(tensor),
                (2, _) => Ok(tensor.f_transpose(0, 1)?),
                _ => text("it multiplies no matrices"),
            }
        };
        let (left, right) = (side(0, "transA")?, side(1, "transB")?);
        let alpha = self.float("alpha", 1.0)?;
        let product = self.product(&left, &right)?.f_mul_scalar(alpha)?;
        let Some(bias) = self.optional_tensor(2)? else {
            return Ok(product);
        };
        broadcast(&product.size(), &bias.size())?;
        Ok(product.f_add(&bias.f_mul_scalar(self.float("beta", 1.0)?)?)?)
    }

    fn convolution(&mut self) -> Result<Tensor, Reason> {
        let (x, kernel, bias) = (self.tensor(0)?, self.tensor(1)?, self.optional_tensor(2)?);
        let (&[batch, channels, height, width], &[filters, depth, rows, columns]) =
            (&x.size()[..], &kernel.size()[..])
        else {
            return text("it is not over planes");
        };
        let is_plain = |name, plain: &[i64]| {
            let found = self.ints(name)?;
            Ok::<bool, Reason>(found.is_none_or(|found| found == plain))
        };
        let plain = is_plain("strides", &[1, 1])?
            && is_plain("dilations", &[1, 1])?
            && is_plain("kernel_shape", &[rows, columns])?
            && self.int("group", 1)? == 1
            && self.attribute("auto_pad").is_none();
        if !plain || channels != depth || rows != columns {
            return text(format!(
                "it has strides, dilations, groups or {depth} × {rows} × {columns} filters \
                 over {channels} planes"
            ));
        }
        let padding = self.ints("pads")?.unwrap_or(vec![0; 4]);
        let side = (rows - 1) / 2;
        let shape = match padding[..] {
            [a, b, c, d] if [a, b, c, d] == [side; 4] && rows == 2 * side + 1 => {
                [batch, filters, height, width]
            }
            _ => {
                return text(format!(
                    "its padding {padding:?} changes the size of the planes"
                ));
            }
        };
        let terms = depth * rows * columns;
        // libtorch may lay out all the numbers of each sum.
        let unfolded = [batch, height, width, terms];
        self.budget.reserve(&unfolded)?;
        self.budget.release(&unfolded);
        self.budget.reserve(&shape)?;
        self.budget.multiply(&shape, terms)?;
        Ok(x.f_conv2d(&kernel, bias.as_ref(), 1, side, 1, 1)?)
    }

    fn layer_norm(&mut self) -> Result<Tensor, Reason> {
        let (x, weight, bias) = (self.tensor(0)?, self.tensor(1)?, self.optional_tensor(2)?);
        self.budget.reserve(&x.size())?;
        let axis = dimension(self.int("axis", -1)?, x.dim())?;
        // Weights over the last dimensions alone never depend on the batch.
        if axis == 0 {
            return text("it goes over the whole batch");
        }
        let shape = x.size()[axis as usize..].to_vec();
        let epsilon = self.float("epsilon", 1e-5)?;
        Ok(x.f_layer_norm(shape, Some(&weight), bias.as_ref(), epsilon, true)?)
    }
}
