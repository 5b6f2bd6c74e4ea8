//! What files of the room may import; Cargo holds what the room may.

use std::path::{Path, PathBuf};

/// Every file below a folder of the crate with its code: no docs, no unit tests.
fn code(folder: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../")).join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
                let lines = text
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                files.push((path, lines.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    assert!(files.len() > 5, "{files:?}");
    files
}

/// The audit shares sums, a plan's numbers and Gauss-Legendre points with nothing that a
/// solve uses.
#[test]
fn audits_share_nothing_with_what_they_check() {
    let mut audits = 0;
    for (path, code) in code("plan/src") {
        let imports = code.lines().filter(|line| line.starts_with("use "));
        if path.ends_with("audit.rs") {
            audits += 1;
            for line in imports {
                let allowed = [
                    "use specgap_number::distribution::",
                    "use crate::{LevelPlan, PlanLaw};",
                    "use specgap_number::quadrature::gauss_legendre;",
                ];
                let found = allowed.iter().any(|start| line.starts_with(start));
                assert!(found, "{}: {line}", path.display());
            }
            let paths = ["super::", "specgap_number::quadrature::{", "crate::scheme"];
            for path_to in paths {
                assert!(!code.contains(path_to), "{}: {path_to}", path.display());
            }
        } else {
            assert!(!code.contains("gauss_legendre"), "{}", path.display());
        }
    }
    assert_eq!(audits, 1);
}
