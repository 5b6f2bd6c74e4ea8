//! The log of omlx: a line behind each request.
//!
//! `vlm_mtp stats: request=e2af finish=stop rounds=1079 accepted=1414/2158 (65.5%) ..`

use super::read::Text;
use crate::counters::counted::{Counted, CountersError, Rounds, Source};

const LINE: &str = "vlm_mtp stats:";

pub(super) fn is_it(text: &str) -> bool {
    text.contains(LINE)
}

pub(super) fn read(files: &[Text<'_>]) -> Result<Counted, CountersError> {
    let mut read = Counted {
        by_request: true,
        ..Counted::of(Source::OmlxLog)
    };
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let Some((_, line)) = line.split_once(LINE) else {
                continue;
            };
            let of = |name: &str| {
                let words = line.split_whitespace();
                words
                    .filter_map(|word| word.split_once('='))
                    .find(|(own, _)| *own == name)
            };
            let lacks = |name: &str| file.refused(format!("line {}: lacks {name}=", index + 1));
            let rounds: f64 = (of("rounds").and_then(|(_, count)| count.parse::<u64>().ok()))
                .ok_or_else(|| lacks("rounds"))? as f64;
            let both = of("accepted").and_then(|(_, both)| both.split_once('/'));
            let count = |text: &str| text.parse::<u64>().ok().map(|count| count as f64);
            let both = both.and_then(|(a, d)| Some([count(a)?, count(d)?]));
            let [accepted, drafted] = both.ok_or_else(|| lacks("accepted"))?;
            let one = Rounds {
                rounds,
                drafted: Some(drafted),
                accepted,
                ..Rounds::default()
            };
            one.check()
                .map_err(|message| file.refused(format!("line {}: {message}", index + 1)))?;
            read.clusters.push(one);
        }
    }
    Ok(read)
}
