//! What moves numbers without changing them.
//!
//! Nothing here may depend on the size of the batch: it is always written −1.

use super::arithmetic::is_float;
use super::{BATCH, Evaluation, Reason, Value, dimension, text};
use tch::{Kind, Tensor};

impl Evaluation<'_> {
    /// The output, if the operator computes with shapes.
    pub(super) fn integers(&mut self, operator: &str) -> Result<Option<Value>, Reason> {
        if operator == "Shape" {
            let mut sizes = self.tensor(0)?.size();
            if sizes.first() == self.planes.size().first() {
                sizes[0] = BATCH;
            }
            return Ok(Some(Value::Integers(sizes, None)));
        }
        let Some(Value::Integers(integers, tensor)) = self.value(0)? else {
            return Ok(None);
        };
        let made = match operator {
            "Slice" => {
                let (starts, ends) = self.bounds()?;
                let ([start], [end]) = (&starts[..], &ends[..]) else {
                    return text("it cuts a shape in several dimensions");
                };
                let place = |bound: i64| {
                    let length = integers.len() as i64;
                    let bound = if bound < 0 { bound + length } else { bound };
                    bound.clamp(0, length) as usize
                };
                let (start, end) = (place(*start), place(*end));
                integers.get(start..end).unwrap_or_default().to_vec()
            }
            "Concat" => {
                let mut all = Vec::new();
                for index in 0..self.node.inputs.len() {
                    all.extend(self.optional_integers(index)?.unwrap_or_default());
                }
                self.budget.reserve(&[all.len() as i64])?;
                all
            }
            // A table that the network keeps as integers.
            "Cast" if tensor.is_some() && is_float(self.int("to", 0)?) => return Ok(None),
            "Cast" | "Identity" => integers.clone(),
            _ => return Ok(None),
        };
        Ok(Some(Value::Integers(made, None)))
    }

    /// The output, if the operator is one of these.
    pub(super) fn shaped(&mut self, operator: &str) -> Result<Option<Tensor>, Reason> {
        let made = match operator {
            "Reshape" => self.reshape()?,
            "Flatten" => self.flatten()?,
            "Transpose" => {
                let x = self.whole()?;
                let reversed = (0..x.dim() as i64).rev().collect();
                x.f_permute(self.ints("perm")?.unwrap_or(reversed))?
            }
            "Squeeze" | "Unsqueeze" => self.squeeze(operator == "Squeeze")?,
            "Expand" => self.expand()?,
            "Concat" => self.concatenation()?,
            "Slice" => self.slice()?,
            "Gather" => self.gather()?,
            _ => return Ok(None),
        };
        Ok(Some(made))
    }

    /// The first input, with room for another tensor like it.
    fn whole(&mut self) -> Result<Tensor, Reason> {
        let x = self.tensor(0)?;
        self.budget.reserve(&x.size())?;
        Ok(x)
    }

    fn reshape(&mut self) -> Result<Tensor, Reason> {
        let x = self.whole()?;
        let Some(sizes) = self.ints_or_input("shape", 1)? else {
            return text("it names no shape");
        };
        let is_free = sizes.iter().any(|&size| size == -1 || size == BATCH);
        let kept = |(index, size): (usize, i64)| match (size, x.size().get(index)) {
            (BATCH, _) => Ok(-1),
            // The first size is the batch's.
            (0, Some(_)) if index == 0 && !is_free => Ok(-1),
            (0, Some(&same)) if index > 0 => Ok(same),
            (0, _) => text("it fixes the size of the batch"),
            (size, _) => Ok(size),
        };
        let sizes = sizes.into_iter().enumerate().map(kept);
        Ok(x.f_reshape(sizes.collect::<Result<Vec<i64>, Reason>>()?)?)
    }

    fn flatten(&mut self) -> Result<Tensor, Reason> {
        let x = self.whole()?;
        match self.int("axis", 1)? {
            1 if x.dim() > 1 => Ok(x.f_flatten(1, -1)?),
            axis => text(format!("it flattens before the axis {axis}")),
        }
    }

    fn squeeze(&mut self, is_squeeze: bool) -> Result<Tensor, Reason> {
        let x = self.whole()?;
        let Some(axes) = self.ints_or_input("axes", 1)? else {
            return text("it names no axes");
        };
        let rank = if is_squeeze {
            x.dim()
        } else {
            x.dim() + axes.len()
        };
        let axes = axes.into_iter().map(|axis| dimension(axis, rank));
        let mut axes = axes.collect::<Result<Vec<i64>, Reason>>()?;
        axes.sort_unstable();
        if is_squeeze {
            axes.reverse();
        }
        axes.into_iter().try_fold(x, |x, axis| {
            Ok(match is_squeeze {
                true => x.f_squeeze_dim(axis)?,
                false => x.f_unsqueeze(axis)?,
            })
        })
    }

    fn expand(&mut self) -> Result<Tensor, Reason> {
        let x = self.tensor(0)?;
        let Some(sizes) = self.optional_integers(1)? else {
            return text("it names no shape");
        };
        let batch = self.planes.size()[0];
        let real: Vec<i64> = sizes
            .iter()
            .map(|&size| if size == BATCH { batch } else { size })
            .collect();
        let shape = super::broadcast(&x.size(), &real)?;
        self.budget.reserve(&shape)?;
        // Added to zeros of the batch's size, which is then nowhere a number.
        let Some(place) = sizes.iter().position(|&size| size == BATCH) else {
            let keep = |(&size, &old)| if size == old { -1 } else { size };
            return match shape.len() == x.dim() {
                true => {
                    let sizes: Vec<i64> = shape.iter().zip(&x.size()).map(keep).collect();
                    Ok(x.f_expand(sizes, false)?)
                }
                false => Ok(x.f_expand(shape, false)?),
            };
        };
        let mut column = vec![1; real.len()];
        column[place] = -1;
        let one = self.planes.f_flatten(1, -1)?.f_narrow(1, 0, 1)?;
        let zeros = one.f_sub(&one)?.f_reshape(column)?;
        let mut fixed = real;
        fixed[place] = 1;
        let fixed = super::broadcast(&x.size(), &fixed)?;
        Ok(x.f_expand(fixed, false)?.f_add(&zeros)?)
    }

    fn concatenation(&mut self) -> Result<Tensor, Reason> {
        let parts = (0..self.node.inputs.len()).map(|index| self.tensor(index));
        let parts = parts.collect::<Result<Vec<Tensor>, Reason>>()?;
        let Some(first) = parts.first() else {
            return text("it has no parts");
        };
        let axis = dimension(self.int("axis", 0)?, first.dim())?;
        if axis == 0 {
            return text("it joins positions of the batch");
        }
        for part in &parts {
            self.budget.reserve(&part.size())?;
        }
        Ok(Tensor::f_cat(&parts, axis)?)
    }

    /// The parts that the input is cut into.
    pub(super) fn split(&mut self) -> Result<Vec<Tensor>, Reason> {
        let x = self.whole()?;
        let axis = dimension(self.int("axis", 0)?, x.dim())?;
        let count = self.node.outputs.len() as i64;
        let size = x.size()[axis as usize];
        let lengths = match self.ints_or_input("split", 1)? {
            Some(lengths) => lengths,
            None if count > 0 && size % count == 0 => vec![size / count; count as usize],
            None => return text(format!("{size} is not divided by {count}")),
        };
        if axis == 0 || lengths.len() as i64 != count {
            return text("its parts are not its outputs");
        }
        Ok(x.f_split_with_sizes(lengths, axis)?)
    }

    fn bounds(&self) -> Result<(Vec<i64>, Vec<i64>), Reason> {
        let starts = self.ints_or_input("starts", 1)?;
        let ends = self.ints_or_input("ends", 2)?;
        match (starts, ends) {
            (Some(starts), Some(ends)) if starts.len() == ends.len() => Ok((starts, ends)),
            _ => text("its bounds do not fit each other"),
        }
    }

    fn slice(&mut self) -> Result<Tensor, Reason> {
        let mut x = self.whole()?;
        let (starts, ends) = self.bounds()?;
        let axes = self.ints_or_input("axes", 3)?;
        let axes = axes.unwrap_or((0..starts.len() as i64).collect());
        let steps = self.optional_integers(4)?.unwrap_or(vec![1; starts.len()]);
        if axes.len() != starts.len() || steps.len() != starts.len() {
            return text("its bounds do not fit each other");
        }
        for (index, axis) in axes.into_iter().enumerate() {
            let axis = dimension(axis, x.dim())?;
            let (start, end, step) = (starts[index], ends[index], steps[index]);
            let size = x.size()[axis as usize];
            x = match step {
                1 if start == 0 && end >= size => x,
                _ if axis == 0 => return text("it cuts the batch"),
                1.. => x.f_slice(axis, start, end, step)?,
                -1 if start == -1 && end < -size => x.f_flip([axis])?,
                _ => return text(format!("it steps by {step}")),
            };
        }
        Ok(x)
    }

    fn gather(&mut self) -> Result<Tensor, Reason> {
        let (x, index) = (self.tensor(0)?, self.tensor(1)?);
        let axis = dimension(self.int("axis", 0)?, x.dim())?;
        if index.kind() != Kind::Int64 {
            return text("its indices are no integers");
        }
        let mut shape = x.size();
        let size = shape[axis as usize];
        let Some(places) = self.optional_integers(1)? else {
            return text("its indices are computed");
        };
        if places.iter().any(|place| !(-size..size).contains(place)) {
            return text(format!("an index is outside of {size}"));
        }
        shape[axis as usize] = places.len() as i64;
        self.budget.reserve(&shape)?;
        match (index.dim(), places.as_slice()) {
            (0, &[place]) => Ok(x.f_select(axis, place)?),
            (1, places) if places.iter().all(|&place| place >= 0) => {
                Ok(x.f_index_select(axis, &index)?)
            }
            _ => text("its indices are no list, or count from the end"),
        }
    }
}
