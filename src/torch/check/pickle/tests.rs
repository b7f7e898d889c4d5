use super::*;
use proptest::prelude::*;

/// A pickled object of class `Network`, with a tensor [2, 3] and a string.
const NETWORK: &[u8] = b"\x80\x02c__torch__\nNetwork\nq\x00)\x81}(X\x01\x00\x00\x00wq\x01\
    ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03\
    ctorch\nHalfStorage\nq\x04X\x01\x00\x00\x007q\x05X\x03\x00\x00\x00cpuq\x06K\x08tQq\x07\
    K\x02(K\x02K\x03t(K\x03K\x01t\x89ccollections\nOrderedDict\nq\x08)RtRq\x09\
    X\x04\x00\x00\x00metaq\x0aX\x01\x00\x00\x00xub.";

fn classes() -> Classes {
    let attributes = [
        ("w".to_owned(), Type::Tensor),
        ("meta".to_owned(), Type::Text),
    ];
    [("Network".to_owned(), Class::from(attributes))].into()
}

/// Returns the pickle with the first occurrence of `from` replaced.
fn changed(from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = NETWORK.windows(from.len()).position(|bytes| bytes == from);
    let at = at.unwrap();
    [&NETWORK[..at], to, &NETWORK[at + from.len()..]].concat()
}

#[test]
fn a_network_is_read() {
    let storages = read(NETWORK, &classes()).unwrap();
    assert_eq!(storages, [("7", 16)].into());
}

#[test]
fn rejects_pickles_that_no_exporter_writes() {
    for (from, to, told) in [
        // In order: the last element lies outside the storage, the strides lead outside the
        // storage, the offset is not a number, there are more sizes than strides, and the tensor is
        // broadcast.
        (&b"K\x08tQ"[..], &b"K\x07tQ"[..], "outside of its storage"),
        (b"(K\x03K\x01t", b"(K\x04K\x01t", "outside of its storage"),
        (b"K\x02(", b"J\xff\xff\xff\xff(", "malformed pickle"),
        (b"(K\x03K\x01t", b"(K\x03t", "outside of its storage"),
        (b"(K\x02K\x03t", b"(K\x09K\x03t", "outside of its storage"),
        (
            b"(K\x02K\x03t(K\x03K\x01t",
            b"(K\x02K\x63t(K\x00K\x00t",
            "outside of its storage",
        ),
        (
            b"_rebuild_tensor_v2",
            b"_rebuild_sparse_tensor",
            "`torch._utils._rebuild_sparse_tensor`",
        ),
        (
            b"_rebuild_tensor_v2",
            b"_rebuild_qtensor",
            "`torch._utils._rebuild_qtensor`",
        ),
        (
            b"torch\nHalfStorage",
            b"torch\nQInt8Storage",
            "`torch.QInt8Storage`",
        ),
        (b"c__torch__\nNetwork", b"cposix\nsystem", "`posix.system`"),
        (
            b"c__torch__\nNetwork",
            b"c__torch__\nOther",
            "`__torch__.Other`",
        ),
        (
            b"c__torch__\nNetwork",
            b"c__torch__.torch.classes.a\nNetwork",
            "torch.classes",
        ),
        (b"metaq\x0a", b"mateq\x0a", "`Network`"),
        (b"X\x01\x00\x00\x00xub", b"K\x01ub", "malformed pickle"),
        // A key without a value would make libtorch read below its stack.
        (b"X\x01\x00\x00\x00xub", b"ub", "malformed pickle"),
        // libtorch allocates memory up to the index of a memoized object, so large indices are
        // rejected.
        (b"q\x05", b"r\xff\xff\xff\x7f", "malformed pickle"),
        (b"q\x05", b"q\x07", "malformed pickle"),
        (
            b"X\x03\x00\x00\x00cpu",
            b"X\x04\x00\x00\x00cuda",
            "malformed pickle",
        ),
        (
            b"X\x01\x00\x00\x007",
            b"X\x04\x00\x00\x00../7",
            "malformed pickle",
        ),
        (b"ub.", b"ub", "malformed pickle"),
        (b"ub.", b"u.", "malformed pickle"),
        (b"ub.", b"ub..", "malformed pickle"),
        (b"}(", b"]q\x01(", "0x5d"),
    ] {
        let refusal = read(&changed(from, to), &classes())
            .unwrap_err()
            .to_string();
        assert!(refusal.contains(told), "{told}: {refusal}");
    }
    // Neither a tensor nor a storage may occur twice.
    let again = changed(
        b"X\x04\x00\x00\x00meta",
        b"X\x01\x00\x00\x00vq\x0ah\x09X\x04\x00\x00\x00meta",
    );
    assert!(matches!(
        read(&again, &classes()),
        Err(Refusal::Senseless(_))
    ));
}

#[test]
fn nesting_is_bounded() {
    let own = [("a".to_owned(), Type::Class("A".to_owned()))];
    let classes = [("A".to_owned(), Class::from(own))].into();
    let mut pickle = b"\x80\x02".to_vec();
    pickle.extend(b"c__torch__\nA\n)\x81}(X\x01\x00\x00\x00a".repeat(100_000));
    pickle.extend(b"ub".repeat(100_000));
    pickle.push(b'.');
    assert!(read(&pickle, &classes).is_err());
    let tuples = [
        &b"\x80\x02"[..],
        &b"(".repeat(100_000),
        &b"t".repeat(100_000),
        b".",
    ]
    .concat();
    assert!(read(&tuples, &classes).is_err());
    let dicts = [
        &b"\x80\x02"[..],
        &b"}(X\x01\x00\x00\x00a".repeat(100_000),
        b".",
    ]
    .concat();
    assert!(read(&dicts, &classes).is_err());
}

proptest! {
    #[test]
    fn changed_pickles_are_read_without_panic(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut pickle = NETWORK.to_vec();
        for (place, byte) in places {
            let place = place.index(pickle.len());
            pickle[place] = byte;
        }
        let _ = read(&pickle, &classes());
    }

    #[test]
    fn any_operations_are_read_without_panic(
        operations in prop::collection::vec(
            prop::sample::select(b"(KMJcqrhj)t}uQRb\x81\x88\x8aX.\x00\x01\n".to_vec()),
            0..60,
        ),
    ) {
        let _ = read(&[b"\x80\x02".to_vec(), operations].concat(), &classes());
    }
}
