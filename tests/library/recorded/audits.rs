//! Audits of simulated engines: capitals and controls.

use super::{Number, Record, count, many};
use crate::audit::{audited, engine};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::audit::{Records, Rule, Seeds, Settings, Simulator, audit_records, negative_control};

fn rules() -> [Rule; 10] {
    [
        Rule::TOKEN,
        Rule::RRS,
        Rule::RRS_WO,
        Rule::LEVEL_4,
        Rule::LEVEL_4_INDEPENDENT,
        Rule::K_SEQ,
        Rule::BLOCK,
        Rule::ONE_HOT,
        Rule::EXACT_MATCH,
        Rule::threshold(0.9).unwrap(),
    ]
}

fn simulator(rule: Rule, bug: Option<&str>) -> Simulator {
    let several = [
        Rule::RRS,
        Rule::RRS_WO,
        Rule::LEVEL_4,
        Rule::LEVEL_4_INDEPENDENT,
        Rule::K_SEQ,
    ];
    let siblings = several.contains(&rule);
    Simulator {
        siblings,
        drafts: if siblings { 2 } else { 3 },
        ..engine(rule, bug)
    }
}

/// Five numbers a token of an engine that keeps drafts with p/q times `kept`, draws them lighter
/// than it says by the power `lighter`, and sometimes drafts nothing.
fn five_numbers(kept: f64, lighter: i32, is_likeliest: bool) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut text = "p,q,accepted,u_q,u_p,u_c,prompt,depth\n".to_owned();
    for token in 0..300 {
        let [p, q, own]: [f64; 3] = rng.random();
        let [u_p, u_c]: [f64; 2] = rng.random();
        let (prompt, depth) = (token / 40, token % 4);
        if token % 11 == 0 {
            text += &format!(",,,,{u_p},{u_c},{prompt},{depth}\n");
            continue;
        }
        let (p, q) = (p * 0.9, q.max(0.01));
        let u_q = if is_likeliest {
            0.0
        } else {
            rng.random::<f64>().powi(lighter) * (1.0 - q)
        };
        let bound = if is_likeliest { p } else { (p / q).min(1.0) };
        let accepted = own < kept * bound;
        let u_c = if accepted {
            String::new()
        } else {
            u_c.to_string()
        };
        let accepted = u8::from(accepted);
        text += &format!("{p},{q},{accepted},{u_q},{u_p},{u_c},{prompt},{depth}\n");
    }
    text
}

#[test]
fn audits_of_five_numbers_a_token() {
    let mut record = Record::new("audit-numbers.txt", include_str!("audit-numbers.txt"));
    for rule in [
        Rule::TOKEN,
        Rule::ONE_HOT,
        Rule::EXACT_MATCH,
        Rule::threshold(0.9).unwrap(),
    ] {
        for (kept, lighter) in [(1.0, 1), (0.7, 1), (1.3, 1), (1.0, 3)] {
            let text = five_numbers(kept, lighter, rule != Rule::TOKEN);
            let records = Records::parse("run.csv".as_ref(), &text).unwrap();
            for tolerance in [0.0, 0.02] {
                let settings = Settings {
                    tolerance,
                    seeds: Some(Seeds::Fresh),
                    ..Settings::new(rule)
                };
                let report = audit_records(&records, &settings, "specgap audit").unwrap();
                let name = format!("{rule}, {kept} {lighter} {tolerance}");
                record.line(&name, of_json(&report));
            }
        }
    }
    record.compare();
}

/// All numbers of a report, in the order of their names.
fn numbers(value: &serde_json::Value, found: &mut Vec<f64>) {
    match value {
        serde_json::Value::Number(number) => found.extend(number.as_f64()),
        serde_json::Value::Bool(yes) => found.push(f64::from(u8::from(*yes))),
        serde_json::Value::Array(all) => all.iter().for_each(|one| numbers(one, found)),
        serde_json::Value::Object(all) => all.values().for_each(|one| numbers(one, found)),
        serde_json::Value::Null | serde_json::Value::String(_) => {}
    }
}

fn of_json(value: &impl serde::Serialize) -> [Number; 2] {
    let mut found = Vec::new();
    numbers(&serde_json::to_value(value).unwrap(), &mut found);
    [count(found.len()), many(&found)]
}

#[test]
fn reports_and_controls() {
    let mut record = Record::new("audit-reports.txt", include_str!("audit-reports.txt"));
    for rule in rules() {
        let settings = Settings {
            seed: 3,
            ..Settings::new(rule)
        };
        let report = audited(&simulator(rule, None), &settings);
        record.line(&format!("{rule}, report"), of_json(&report));
        // Other settings: what is left is less sure.
        let lax = Settings {
            noise: Some(0.2),
            alpha: 1e-2,
            ..settings
        };
        let report = audited(&simulator(rule, None), &lax);
        record.line(&format!("{rule}, lax report"), of_json(&report));
    }
    for rule in [Rule::TOKEN, Rule::RRS, Rule::ONE_HOT] {
        let settings = Settings {
            alpha: 1e-3,
            tolerance: 0.0,
            ..Settings::new(rule)
        };
        crate::audit::with_log(&simulator(rule, None), |log| {
            let control = negative_control(log, &settings).unwrap();
            record.line(&format!("{rule}, control"), of_json(&control));
        });
    }
    record.compare();
}
