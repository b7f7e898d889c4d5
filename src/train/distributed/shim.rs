//! Declarations of the C++ functions in the adjacent `.cpp` files.

use crate::torch::shim::RawTensor;
use std::ffi::{c_char, c_int};

/// A reference-counted pointer to a `c10d::Store`.
#[repr(C)]
pub(super) struct RawStore {
    _private: [u8; 0],
}

/// A reference-counted pointer to a `c10d::Backend`.
#[repr(C)]
pub(super) struct RawGroup {
    _private: [u8; 0],
}

/// A reference-counted pointer to a `c10d::Work`.
#[repr(C)]
pub(super) struct RawWork {
    _private: [u8; 0],
}

/// A reference-counted pointer to the pending gradient sums of a step.
#[repr(C)]
pub(super) struct RawSums {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub(super) fn tessera_store_open(
        host: *const c_char,
        port: u16,
        hosts: bool,
        workers: usize,
        prefix: *const c_char,
        timeout: i64,
        out: *mut *mut RawStore,
    ) -> *mut c_char;
    pub(super) fn tessera_store_free(store: *mut RawStore);

    pub(super) fn tessera_group_create(
        store: *const RawStore,
        name: *const c_char,
        rank: c_int,
        size: c_int,
        device: c_int,
        timeout: i64,
        out: *mut *mut RawGroup,
    ) -> *mut c_char;
    pub(super) fn tessera_group_free(group: *mut RawGroup);
    pub(super) fn tessera_group_abort(group: *const RawGroup) -> *mut c_char;
    pub(super) fn tessera_group_sum(
        group: *const RawGroup,
        tensor: *const RawTensor,
        out: *mut *mut RawWork,
    ) -> *mut c_char;
    pub(super) fn tessera_group_broadcast(
        group: *const RawGroup,
        tensor: *const RawTensor,
        out: *mut *mut RawWork,
    ) -> *mut c_char;
    pub(super) fn tessera_work_wait(work: *const RawWork) -> *mut c_char;
    pub(super) fn tessera_work_free(work: *mut RawWork);

    pub(super) fn tessera_leaf_gradient(
        leaf: *const RawTensor,
        gradient: *const RawTensor,
    ) -> *mut c_char;
    pub(super) fn tessera_sums_create(
        group: *const RawGroup,
        leaves: *const *const RawTensor,
        count: usize,
        out: *mut *mut RawSums,
    ) -> *mut c_char;
    pub(super) fn tessera_sums_free(sums: *mut RawSums);
    pub(super) fn tessera_sums_arm(sums: *const RawSums);
    pub(super) fn tessera_sums_finish(sums: *const RawSums) -> *mut c_char;
    pub(super) fn tessera_sums_seen(sums: *const RawSums, order: *mut i64) -> *mut c_char;
    pub(super) fn tessera_sums_reorder(sums: *const RawSums, order: *const i64) -> *mut c_char;
}
