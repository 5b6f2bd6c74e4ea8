//! Stops early where feature `highs` would stop late: HiGHS is some minutes of
//! C++, and a missing libclang is otherwise noticed at the end of them.

use std::path::Path;
use std::process::Command;

/// Set to skip the check on a system where it looks in the wrong places.
const SKIP: &str = "SPECGAP_SKIP_PREREQUISITES";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for variable in [SKIP, "LIBCLANG_PATH", "PATH", "CMAKE"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let wanted = std::env::var_os("CARGO_FEATURE_HIGHS").is_some();
    if !wanted || std::env::var_os(SKIP).is_some() || !cfg!(target_os = "linux") {
        return;
    }
    let mut missing = Vec::new();
    let cmake = std::env::var_os("CMAKE").unwrap_or_else(|| "cmake".into());
    if Command::new(cmake).arg("--version").output().is_err() {
        missing.push("cmake");
    }
    if !has_libclang() {
        missing.push("libclang");
    }
    if !missing.is_empty() {
        let missing = missing.join(" and ");
        println!(
            "cargo::error=feature highs needs {missing}, not found here. On Debian or Ubuntu: \
             apt-get install cmake g++ make libclang1-14 (or the newest libclang1-NN there is). \
             Or run ./scripts/test, which installs them, or build without --features highs. \
             If they are in an unusual place, set LIBCLANG_PATH, or {SKIP}=1 to go on regardless."
        );
    }
}

fn has_libclang() -> bool {
    let library = |folder: &Path| {
        std::fs::read_dir(folder).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let stem = name.starts_with("libclang.so") || name.starts_with("libclang-");
                stem && name.contains(".so") && !name.starts_with("libclang-cpp")
            })
        })
    };
    if let Some(path) = std::env::var_os("LIBCLANG_PATH") {
        let path = Path::new(&path);
        if path.is_file() || library(path) {
            return true;
        }
    }
    for program in ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"] {
        if let Ok(output) = Command::new(program).arg("-p").output() {
            let listed = String::from_utf8_lossy(&output.stdout);
            if listed.lines().any(|line| {
                let name = line.trim_start();
                name.starts_with("libclang.so")
                    || name.starts_with("libclang-") && !name.starts_with("libclang-cpp")
            }) {
                return true;
            }
        }
    }
    let versions = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten();
    let mut folders: Vec<_> = versions
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm"))
        .flat_map(|entry| [entry.path().join("lib"), entry.path().join("lib64")])
        .collect();
    folders.extend(["/usr/lib64", "/usr/local/lib", "/usr/lib"].map(Into::into));
    folders.iter().any(|folder| library(folder))
}
