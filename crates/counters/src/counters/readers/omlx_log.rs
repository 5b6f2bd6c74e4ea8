//! The log of omlx: a line behind each request.
//!
//! `vlm_mtp stats: request=e2af finish=stop rounds=1079 accepted=1414/2158 (65.5%) ..`

use super::read::{Text, agree_on_mean, whole};
use crate::counters::counted::{Counted, CountersError, Rounds, Source};

const LINE: &str = "vlm_mtp stats:";

pub(super) fn is_it(text: &str) -> bool {
    text.contains(LINE)
}

pub(super) fn read(files: &[Text<'_>]) -> Result<Counted, CountersError> {
    let mut read = Counted::of(Source::OmlxLog, Vec::new());
    read.by_request = true;
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let Some((_, line)) = line.split_once(LINE) else {
                continue;
            };
            let of = |name: &str| {
                let mut words = line
                    .split_whitespace()
                    .filter_map(|word| word.split_once('='));
                Some(words.find(|(own, _)| *own == name)?.1)
            };
            let lacks = |name: &str| file.refused_at(index, format!("lacks {name}="));
            let rounds = of("rounds").and_then(whole);
            let rounds = rounds.ok_or_else(|| lacks("rounds"))?;
            let both = of("accepted").and_then(|both| both.split_once('/'));
            let both = both.and_then(|(a, d)| Some([whole(a)?, whole(d)?]));
            let [accepted, drafted] = both.ok_or_else(|| lacks("accepted"))?;
            let one = Rounds::new(rounds, Some(drafted), accepted, None);
            let said = of("tokens_per_round").and_then(|mean| mean.parse().ok());
            (one.check())
                .and_then(|()| agree_on_mean("tokens_per_round", said, &one))
                .map_err(|message| file.refused_at(index, message))?;
            read.clusters.push(one);
        }
    }
    Ok(read)
}
