//! What an audit took for granted, in words.

use crate::audit::data::{Claimed, RequestsReport};
use crate::audit::evidence::rows::orders_of;
use crate::audit::model::rule::Rule;
use crate::audit::verdict::opened::Opened;

pub(crate) fn drafted_nowhere() -> String {
    "has a draft that was verified, and no row of the draft (draft_row is 0), without which this rule \
     is not known; log the row, or audit what came out alone with ⟨rule text⟩"
        .to_owned()
}

/// Says in words what an audit takes for granted of random numbers.
pub(crate) fn of_requests(requests: &RequestsReport) -> Vec<String> {
    let mut notes = Vec::new();
    if requests.averaged > 0 {
        let why = match requests.seeds.as_str() {
            "unknown" => {
                "nothing says whether they drew random numbers of their own. If they did, say \
                 --seeds fresh, or log seed [N] (docs/reference/log-format.md): much less text is then enough"
            }
            "shared" => "--seeds shared says so",
            _ => "their logged seeds are equal",
        };
        notes.push(format!(
            "e-values of {} texts are averaged and not multiplied, because they may share random \
             numbers: {why}",
            requests.averaged
        ));
    }
    if requests.repeated > 0 {
        notes.push(format!(
            "{} texts repeat another one's tokens or ranks, which draws of their own would do with \
             probability below 1e-6: requests share random numbers, or are not sampled",
            requests.repeated
        ));
    }
    notes
}

pub(crate) fn notes(opened: &Opened<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let is_text = opened.rule == Rule::TEXT;
    if opened.log.is_top_heavy() {
        let how = match is_text {
            true => {
                "p is tested with all others as one token, which is a law that is known exactly"
            }
            false => {
                "draft and output laws are tested with all others as one token, acceptance where \
                 the draft is listed, corrections where their law is known; each of these laws is \
                 known exactly"
            }
        };
        notes.push(format!("rows list some tokens only: {how}"));
    }
    if !is_text && !opened.log.engine_tensors().contains(&"accepted") {
        notes.push(
            "the log has no tensor accepted: every position is a round of its own, and a draft \
             counts as accepted where it is the output"
                .to_owned(),
        );
    }
    if opened.steps.without_bonus > 0 {
        let all = if opened.steps.never_bonus { "all " } else { "" };
        notes.push(format!(
            "in {all}{} rounds whose drafts were all accepted the token behind them is missing. \
             Where the log leaves it out, give each row its position in the text, or log that \
             token in a row with accepted -1. Where the engine puts out none, a token a round is \
             wasted; what comes out is not biased by it",
            opened.steps.without_bonus
        ));
    }
    let cut = opened.steps.cut;
    if cut > 0 {
        notes.push(format!(
            "{cut} of {} rounds lack the rows of their last tokens, which are in the text by \
             position: such tokens (with transformers, the one behind a whole chain) are not \
             audited",
            opened.steps.rounds
        ));
    }
    notes
}

/// The claims that explain as much where nobody said in which order rows are cut, or that the draft's
/// is cut too, and what to say of each.
pub(super) fn unsaid(said: &Claimed) -> Vec<(Claimed, String)> {
    let orders = match said.cut_order {
        Some(_) => Vec::new(),
        None => orders_of(said),
    };
    let order_of = |claimed: &Claimed| claimed.cut_order.unwrap_or_default();
    let orders = orders.into_iter().map(|claimed| {
        let order = order_of(&claimed);
        let words = format!(
            "nothing says in which order the row is cut, and the usual one is refuted: this is the \
             verdict for the order {order}. Say --cut-order {order}, or write sampling.cut_order into \
             the log"
        );
        (claimed, words)
    });
    let mut all: Vec<(Claimed, String)> = orders.collect();
    if said.cuts() && said.of_draft().is_none() {
        let claims = std::iter::once(said).chain(all.iter().map(|(claimed, _)| claimed));
        let cut = claims.map(|claimed| {
            let order = match claimed.cut_order == said.cut_order {
                true => String::new(),
                false => format!(" --cut-order {}", order_of(claimed)),
            };
            let words = format!(
                "nothing says that the draft's row is cut too, and a whole one is refuted: this is the \
                 verdict for a draft that is cut as the target is. Say --draft-cut{order}"
            );
            let claimed = Claimed {
                draft_cut: true,
                ..claimed.clone()
            };
            (claimed, words)
        });
        let cut: Vec<_> = cut.collect();
        all.extend(cut);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit;
    use crate::audit::data::{Claimed, Settings};
    use crate::audit::tests::log;

    /// One position of a rule that is lossy, and what is noted of it.
    #[test]
    fn a_report_says_how_lossy_a_rule_is_and_what_it_took_for_granted() {
        let rows = [([0.5, 0.25, 0.25], [0.8, 0.1, 0.1])];
        let log = log(&rows, &[([0, -1], 1, 0)]);
        let of = |rule: Rule| audit(&log, &Settings::new(rule), "", &|_| {}).unwrap();
        // Token 0 is kept with 0.8, and comes out with that: 0.3 more than it should.
        let lossy = of(Rule::threshold(0.625).unwrap()).lossy_by_design.unwrap();
        assert!((lossy - 0.3).abs() < 1e-6, "{lossy}");
        assert_eq!(of(Rule::TOKEN).lossy_by_design, None);
        assert!(of(Rule::TOKEN).notes.is_empty());
        let silent = crate::audit::tests::log_of(&rows, &[([0, -1], 1, 0)], "{}");
        let mut settings = Settings::new(Rule::TOKEN);
        let is_assumed = |settings: &Settings| {
            let report = audit(&silent, settings, "", &|_| {}).unwrap();
            report.is_sampling_assumed
        };
        assert!(is_assumed(&settings));
        settings.claimed = Some(Claimed::at(1.0));
        assert!(!is_assumed(&settings));
    }
}
