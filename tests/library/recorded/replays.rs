//! Replays of the demo's log: what rules keep of trees, in rows of some fifty tokens.

use super::{Record, plain};
use crate::trees::settings;
use specgap::log::Log;
use specgap::replay::{TreeSettings, measure_trees};
use specgap::scheme::SchemeName;
use std::path::Path;

#[test]
fn trees_of_the_demos_log_are_kept_as_they_were() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models/logs/smollm2-demo");
    let log = Log::open(Path::new(folder)).unwrap();
    let settings = TreeSettings {
        schemes: vec![
            SchemeName::WITH_REPLACEMENT,
            SchemeName::WITHOUT_REPLACEMENT,
            SchemeName::STRATIFIED,
            SchemeName::STRATIFIED_INDEPENDENT,
        ],
        ..settings(&["chain-4", "prefix-4-2-1"])
    };
    let report = measure_trees(&[log], &settings, "test", &|_| {}).unwrap();
    let mut record = Record::new("replays.txt", include_str!("replays.txt"));
    for tree in &report.results {
        let name = format!("{} {} {}", tree.tree, tree.scheme, tree.verifier);
        let numbers = [
            Some(&tree.tokens_per_call),
            tree.expected_accepted_length.as_ref(),
            tree.most_accepted_length.as_ref(),
        ];
        let means = numbers.into_iter().flatten().map(|one| plain(one.mean));
        record.line(&name, means);
    }
    record.compare();
}
