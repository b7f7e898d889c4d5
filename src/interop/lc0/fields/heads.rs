//! The tensors of the heads.

use super::{Visited, Walk};
use crate::interop::lc0::schema::{self, ConvBlock, PolicyHeads, ValueHeads, Weights};
use crate::network::lc0::{Lc0Config, PolicyHead, PolicyHeadConfig, ValueHead};

impl Walk<'_, '_> {
    pub(super) fn policies(&mut self, config: &Lc0Config, heads: &mut PolicyHeads) -> Visited {
        if config.policy.embedding.is_some() {
            let PolicyHeads {
                ip_pol_w, ip_pol_b, ..
            } = heads;
            self.pair("embedding", ip_pol_w, ip_pol_b)?;
        }
        for (&name, head) in &config.policy.heads {
            let message = policy_head(heads, name).get_or_insert_default();
            self.within(name.name(), |walk| walk.policy(head, message))?;
        }
        Ok(())
    }

    fn policy(&mut self, config: &PolicyHeadConfig, message: &mut schema::PolicyHead) -> Visited {
        let schema::PolicyHead {
            ip_pol_w,
            ip_pol_b,
            ip2_pol_w,
            ip2_pol_b,
            ip3_pol_w,
            ip3_pol_b,
            ip4_pol_w,
            pol_encoder,
            pol_headcount,
            policy1,
            policy,
        } = message;
        match config {
            PolicyHeadConfig::Classical { .. } => {
                let block = policy.get_or_insert_default();
                let ConvBlock {
                    weights, biases, ..
                } = block;
                self.pair("squares", weights, biases)?;
                self.pair("moves", ip_pol_w, ip_pol_b)
            }
            PolicyHeadConfig::Convolutional { .. } => {
                self.convolution("conv1", policy1)?;
                self.convolution("conv2", policy)
            }
            PolicyHeadConfig::Attention {
                embedding, encoder, ..
            } => {
                if embedding.is_some() {
                    self.pair("embedding", ip_pol_w, ip_pol_b)?;
                }
                if let Some(encoder) = encoder {
                    *pol_headcount = Some(encoder.heads as u32);
                    self.encoder(encoder, pol_encoder)?;
                }
                self.pair("query", ip2_pol_w, ip2_pol_b)?;
                self.pair("key", ip3_pol_w, ip3_pol_b)?;
                self.tensor("promotion.weight", ip4_pol_w)
            }
        }
    }

    pub(super) fn values(&mut self, config: &Lc0Config, heads: &mut ValueHeads) -> Visited {
        for (&name, head) in &config.value {
            let message = value_head(heads, name).get_or_insert_default();
            let schema::ValueHead {
                ip_val_w,
                ip_val_b,
                ip1_val_w,
                ip1_val_b,
                ip2_val_w,
                ip2_val_b,
                ip_val_err_w,
                ip_val_err_b,
                ip_val_cat_w,
                ip_val_cat_b,
                value,
            } = message;
            let squares = match config.attention {
                Some(_) => (ip_val_w, ip_val_b),
                None => {
                    let block = value.get_or_insert_default();
                    (&mut block.weights, &mut block.biases)
                }
            };
            self.within(name.name(), |walk| {
                let (weight, bias) = squares;
                walk.pair("squares", weight, bias)?;
                walk.pair("hidden", ip1_val_w, ip1_val_b)?;
                walk.pair("output", ip2_val_w, ip2_val_b)?;
                if head.error {
                    walk.pair("error", ip_val_err_w, ip_val_err_b)?;
                }
                match head.buckets {
                    None => Ok(()),
                    Some(_) => walk.pair("categorical", ip_val_cat_w, ip_val_cat_b),
                }
            })?;
        }
        Ok(())
    }

    pub(super) fn moves_left(&mut self, config: &Lc0Config, weights: &mut Weights) -> Visited {
        if config.moves_left.is_none() {
            return Ok(());
        }
        let Weights {
            moves_left,
            ip_mov_w,
            ip_mov_b,
            ip1_mov_w,
            ip1_mov_b,
            ip2_mov_w,
            ip2_mov_b,
            ..
        } = weights;
        let squares = match config.attention {
            Some(_) => (ip_mov_w, ip_mov_b),
            None => {
                let block = moves_left.get_or_insert_default();
                (&mut block.weights, &mut block.biases)
            }
        };
        let (weight, bias) = squares;
        self.pair("squares", weight, bias)?;
        self.pair("hidden", ip1_mov_w, ip1_mov_b)?;
        self.pair("output", ip2_mov_w, ip2_mov_b)
    }
}

/// The place of a policy.
pub(in crate::interop::lc0) fn policy_head(
    heads: &mut PolicyHeads,
    name: PolicyHead,
) -> &mut Option<schema::PolicyHead> {
    match name {
        PolicyHead::Vanilla => &mut heads.vanilla,
        PolicyHead::Optimistic => &mut heads.optimistic_st,
        PolicyHead::Soft => &mut heads.soft,
        PolicyHead::Opponent => &mut heads.opponent,
    }
}

/// The place of a value.
pub(in crate::interop::lc0) fn value_head(
    heads: &mut ValueHeads,
    name: ValueHead,
) -> &mut Option<schema::ValueHead> {
    match name {
        ValueHead::Winner => &mut heads.winner,
        ValueHead::Q => &mut heads.q,
        ValueHead::St => &mut heads.st,
    }
}
