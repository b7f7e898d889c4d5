//! The position table.

use super::tree::Tree;
use super::tree::arena::{Index, Span};
use super::tree::table::Table;
use crate::check;
use loom::thread;
use std::sync::Arc;

/// A thread finds a node that another has just created.
pub(crate) fn an_entry_is_seen_with_its_node() {
    const KEY: u64 = 77 << 32 | 77;
    check(3, || {
        let tree = Arc::new(Tree::new(2));
        let finder = {
            let tree = Arc::clone(&tree);
            thread::spawn(move || {
                if let Some(node) = tree.table.find(KEY, |_| true) {
                    assert_eq!(tree.node(node).key(), KEY);
                }
            })
        };
        let node = tree.add_node(&mut Span::default(), KEY).unwrap();
        tree.table.insert(KEY, node);
        finder.join().unwrap();
        assert!(tree.table.find(KEY, |_| true).is_some());
    });
}

/// Two threads insert entries and look up earlier ones. One of the insertions splits a bucket.
pub(crate) fn no_entry_is_mixed_up_while_it_grows() {
    // These keys belong to the first bucket, alternately to the two halves into which it is split.
    let key = |number: u64| number << 9;
    let finds = move |table: &Table, number: u64| {
        let node = table.find(key(number), |_| true);
        assert!(node.is_none_or(|node| node == number as Index), "{number}");
        node.is_some()
    };
    check(2, move || {
        let table = Arc::new(Table::new(1));
        (1..=5).for_each(|number| table.insert(key(number), number as Index));
        let grower = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                table.insert(key(6), 6);
                finds(&table, 6);
            })
        };
        finds(&table, 1);
        table.insert(key(7), 7);
        finds(&table, 2);
        grower.join().unwrap();
        // No thread loses earlier entries.
        assert!((1..=5).all(|number| finds(&table, number)));
        finds(&table, 6);
        finds(&table, 7);
    });
}
