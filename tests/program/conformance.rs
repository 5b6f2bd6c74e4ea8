//! `specgap conformance`: the files, the manifest, exit codes, and the harness in Python over them.

use crate::run::{ROOT, Run, cases, names, specgap};
use crate::says::Says;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `specgap conformance` in a folder, by a line of words.
fn conformance(folder: &Path, line: &str) -> Run {
    let words = line.split_whitespace();
    specgap(folder, ["conformance"].into_iter().chain(words))
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap()
}

#[test]
fn vectors_and_a_manifest_of_them_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let run = conformance(folder.path(), "--out vectors --vocab 2,5").ok();
    let last = run.out.lines().last().unwrap();
    assert_eq!(
        last,
        "next: python scripts/conformance/harness.py vectors --kernel MODULE"
    );
    let vectors = folder.path().join("vectors");
    let manifest = manifest(&vectors);
    assert_eq!(manifest["schema"], 1);
    let files = manifest["files"].as_array().unwrap();
    let mut listed: BTreeSet<String> = (files.iter())
        .map(|file| file["file"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(listed.len(), files.len());
    assert!(
        run.out
            .starts_with(&format!("{} files of vectors", files.len() + 1))
    );
    let named = |list: &str| -> BTreeSet<&str> {
        let list = manifest[list].as_array().unwrap();
        list.iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect()
    };
    let (rules, situations, arrays) = (named("rules"), named("situations"), named("arrays"));
    let expected = [
        "token",
        "one-hot",
        "rrs",
        "rrs-wo",
        "level-4",
        "shared-gumbel",
        "exact-match",
        "carried",
        "carried-block",
    ];
    assert_eq!(rules, BTreeSet::from(expected));
    for file in files {
        assert!(rules.contains(file["rule"].as_str().unwrap()));
        assert!([2, 5].contains(&file["vocabulary"].as_u64().unwrap()));
        assert_eq!(file["arithmetic"], "exact");
        let of_file = file["situations"].as_array().unwrap();
        assert!(!of_file.is_empty());
        assert!(
            of_file
                .iter()
                .all(|one| situations.contains(one.as_str().unwrap()))
        );
        // The archive holds arrays of the manifest's names alone, target and drafts among them.
        let bytes = std::fs::read(vectors.join(file["file"].as_str().unwrap())).unwrap();
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
        let mut held = BTreeSet::new();
        for at in 0..archive.len() {
            let entry = archive.by_index(at).unwrap();
            held.insert(entry.name().unwrap().trim_end_matches(".npy").to_owned());
        }
        assert!(
            held.iter().all(|name| arrays.contains(name.as_str())),
            "{held:?}"
        );
        let names: &[&str] = match file["kind"] == "noise" {
            true => &[
                "target",
                "draft",
                "noise",
                "noise_drafts",
                "noise_token",
                "noise_accepted",
            ],
            false => &["target", "draft", "drafts", "possible", "next_law"],
        };
        for &name in names {
            assert!(held.contains(name), "{name} is not in {held:?}");
        }
    }
    listed.extend(["manifest.json", "trees.json"].map(str::to_owned));
    assert_eq!(BTreeSet::from_iter(names(&vectors)), listed);
    // The same again, to the byte.
    let run = conformance(folder.path(), "--out again --vocab 2,5 --format json");
    let said: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(
        (&said["schema"], &said["folder"]),
        (&1.into(), &"again".into())
    );
    assert_eq!(said["files"].as_u64(), Some(files.len() as u64 + 1));
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    for name in &listed {
        let both = ["vectors", "again"].map(|folder| read(&format!("{folder}/{name}")));
        assert_eq!(both[0], both[1], "{name}");
    }
}

#[test]
fn rules_that_are_named_are_the_only_ones() {
    let folder = tempfile::tempdir().unwrap();
    conformance(
        folder.path(),
        "--out v --vocab 3 --verifiers rrs,chain --seed 4",
    )
    .ok();
    let manifest = manifest(&folder.path().join("v"));
    assert_eq!(manifest["seed"], 4);
    let files = manifest["files"].as_array().unwrap().iter();
    let rules: BTreeSet<&str> = files.map(|file| file["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, BTreeSet::from(["token", "rrs"]));
}

#[test]
fn bad_input_exits_2_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "x").unwrap();
    for (line, words) in cases(
        r#"
            --out v --vocab 1 -> from 2 to
            --out v --vocab 99999999 -> from 2 to
            --out v --vocab many -> many
            --out v --verifiers nonsense -> nonsense
            --out file --vocab 2 -> file
            --vocab 2 -> --out
        "#,
    ) {
        let run = conformance(folder.path(), &line);
        assert_eq!(run.code, Some(2), "{line}: {}", run.out);
        run.refused(&words);
        assert_eq!(names(folder.path()), ["file"], "{line}");
    }
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"x");
}

/// A Python that has NumPy: that of SPECGAP_PYTHON, or the first on the path. Where it is named
/// it has to have it; where none has it, what asks for it is skipped.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("SPECGAP_PYTHON").map(PathBuf::from);
    let python = named.clone().unwrap_or_else(|| "python3".into());
    let found = Command::new(&python).args(["-c", "import numpy"]).output();
    let has = found.is_ok_and(|found| found.status.success());
    assert!(has || named.is_none(), "{}: has no NumPy", python.display());
    if !has {
        eprintln!("skipped: python3 has no NumPy; set SPECGAP_PYTHON to one that has");
    }
    has.then_some(python)
}

/// Runs a script of the harness on `vectors` in a folder.
fn script(python: &Path, folder: &Path, name: &str, args: &[&str]) -> Run {
    let output = Command::new(python)
        .arg(Path::new(ROOT).join("scripts/conformance").join(name))
        .args(args)
        .current_dir(folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run {
        code: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// Kernels for stratified drafts: the reference of its own derivation passes; rejection of i.i.d. or
/// of distinct drafts in its place, and one residual too many, do not. Skipped where there is no
/// Python with NumPy.
#[test]
fn a_kernel_of_levels_passes_and_others_in_its_place_do_not() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    conformance(
        folder.path(),
        "--out vectors --vocab 4,8,17,300 --verifiers level-4",
    )
    .ok();
    for (name, code) in [
        ("reference", None),
        ("rrs.py", Some("from reference import rrs as level_4")),
        ("rrs_wo.py", Some("from reference import rrs_wo as level_4")),
        // One residual too many: levels that begin with (p - q)+.
        (
            "residual.py",
            Some(
                "import copy\nimport reference\n\n\ndef level_4(vector, samples, seed):\n    \
                 other = copy.copy(vector)\n    left = reference.positive(vector.target[0], \
                 vector.draft[0])\n    other.target = [left]\n    \
                 return reference.level_4(other, samples, seed)\n",
            ),
        ),
    ] {
        if let Some(code) = code {
            std::fs::write(folder.path().join(name), code).unwrap();
        }
        let args = ["vectors", "--kernel", name, "--samples", "20000"];
        let run = script(&python, folder.path(), "harness.py", &args);
        let expected = i32::from(code.is_some());
        assert_eq!(run.code, Some(expected), "{name}: {run:?}");
    }
}

fn strings(list: &Value) -> Vec<String> {
    let all = list.as_array().unwrap().iter();
    all.map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// A kernel may refuse what broke, or take q over its sum; and no more than that.
#[test]
fn requests_that_broke_may_be_refused_and_others_may_not() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    conformance(folder.path(), "--out vectors --vocab 17 --verifiers token").ok();
    for (name, failed, code) in [
        (
            "sums.py",
            0,
            "import copy\nimport numpy\nimport reference\n\n\ndef token_call(call, samples, seed):\n    \
             other = copy.copy(call)\n    sums = call.draft_rows.sum(axis=-1, keepdims=True)\n    \
             fine = numpy.isfinite(sums) & (sums > 0)\n    \
             other.draft_rows = numpy.where(fine, call.draft_rows / numpy.where(fine, sums, 1), \
             call.draft_rows)\n    return reference.token_call(other, samples, seed)\n",
        ),
        (
            "raises.py",
            0,
            "import numpy\nimport reference\n\n\ndef token_call(call, samples, seed):\n    \
             used = [(r, k) for r in range(4) for k in range(call.verified[r])]\n    \
             sums = [call.draft_rows[r][k].sum() for r, k in used]\n    \
             if not numpy.isfinite(call.target_logits).all() or not numpy.allclose(sums, 1, atol=1e-3):\n        \
             raise ValueError('rows broke')\n    return reference.token_call(call, samples, seed)\n",
        ),
        (
            "refuses_all.py",
            16,
            "import numpy\n\n\ndef token_call(call, samples, seed):\n    \
             none = numpy.zeros((samples, 4), int)\n    return none, none - 1\n",
        ),
    ] {
        std::fs::write(folder.path().join(name), code).unwrap();
        let args = format!("vectors --kernel {name} --samples 4000 --format json");
        let args: Vec<&str> = args.split(' ').collect();
        let run = script(&python, folder.path(), "harness.py", &args);
        let said: Value =
            serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{name}: {run:?}"));
        assert_eq!(
            (&said["passed"], &said["failed"]),
            (&(16 - failed).into(), &failed.into()),
            "{name}: {said}"
        );
    }
}

/// A harness that can find nothing finds nothing wrong: the planted bugs are found, and the
/// reference passes. Skipped where there is no Python with NumPy; `scripts/test` says so.
#[test]
fn the_harness_finds_every_planted_bug_and_passes_the_reference() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    conformance(
        folder.path(),
        "--out vectors --vocab 2,17 --verifiers chain,shared-gumbel,carried,carried-block,traversal-4",
    )
    .ok();
    let args = ["vectors", "--samples", "2000", "--format", "json"];
    let run = script(&python, folder.path(), "broken.py", &args).ok();
    let said: Value = serde_json::from_str(&run.out).unwrap();
    let results = said["results"].as_array().unwrap();
    let found = |result: &Value| result["found_by"].as_u64().unwrap();
    // Bugs of each rule and of calls, and the reference of each.
    assert_eq!(results.len(), 8 + 5 + 3 + 5 + 4 + 20);
    let mut told = BTreeSet::new();
    for result in results {
        assert_eq!(found(result) == 0, result["bug"].is_null(), "{result}");
        let is_call = result["rule"] == "call";
        let is_noise = result["rule"] == "shared-gumbel";
        assert!(result["vectors"].as_u64().unwrap() >= if is_call || is_noise { 16 } else { 40 });
        if is_call {
            told.extend(strings(&result["situations"]));
        }
    }
    // Every situation of a call tells a bug.
    let manifest = manifest(&folder.path().join("vectors"));
    let files = manifest["files"].as_array().unwrap().iter();
    let of_calls = files.filter(|file| file["kind"] == "calls");
    let all: BTreeSet<String> = of_calls
        .flat_map(|file| strings(&file["situations"]))
        .collect();
    assert_eq!((told, all.len()), (all, 16));
    // The residual of nearly equal rows shows what 1e-10 in it does.
    let epsilon = results.iter().find(|result| result["bug"] == "epsilon");
    let situations = epsilon.unwrap()["situations"].as_array().unwrap();
    assert!(
        situations.contains(&"tiny-residual".into()),
        "{situations:?}"
    );
    // Bad usage of the scripts.
    for (name, args) in [
        ("broken.py", &["nothing"][..]),
        ("harness.py", &["nothing", "--kernel", "reference"]),
    ] {
        let run = script(&python, folder.path(), name, args);
        assert_eq!(run.code, Some(2), "{name}: {}", run.err);
        run.err.says("manifest.json is not there");
    }
}
