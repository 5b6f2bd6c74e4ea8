//! Do the reports of `specgap solve` read as they did?

use specgap::evaluate::{Limits, solve};
use specgap::lp::BackendName;
use specgap::problem::{AnyProblem, read};
use specgap::report::solve::page;
use std::path::Path;

/// The reports as people and programs see them, with times taken out.
#[test]
fn golden_reports() {
    let solution = |path: &str| {
        let problem = read(Path::new(path)).unwrap().remove(0).1;
        let AnyProblem::Single(problem) = problem else {
            panic!("{path} is a block problem")
        };
        let limits = Limits {
            highs_variables: 0.0,
            ..Limits::default()
        };
        let mut solution = solve(&problem, &limits);
        solution
            .methods
            .retain(|run| run.backend != Some(BackendName::Highs));
        for run in &mut solution.methods {
            run.seconds = 0.0;
        }
        solution
    };
    for name in [
        "without-replacement/two-laws-sequential",
        "spectr/bernoulli-quarter-half-n2",
    ] {
        let solution = solution(&format!("problems/{name}.toml"));
        let stem = name.split('/').next_back().unwrap();
        insta::assert_snapshot!(format!("{stem}-text"), page(&solution).text(100, false));
        insta::assert_snapshot!(
            format!("{stem}-json"),
            serde_json::to_string(&solution).unwrap()
        );
    }
}
