//! What rules of the caller's own answer at a position.

use super::answers::{Answers, find, gap};
use super::law_answers::gap_under;
use super::metric::{AboutOwn, LawRef, Metric, Place, Temperature, rate_of};
use super::own::{OwnAsked, OwnRow, lists_refused};
use super::settings::Asked;
use specgap_number::known::Known;

/// Answers what is asked of own rules at a temperature, behind the rules of the table.
///
/// `whole` says that no token outside of the rows can be drawn, and `of` whose rows these are:
/// the position's number, and a seed.
pub(super) fn answer(
    [target, draft]: [&[f64]; 2],
    whole: bool,
    of: (usize, u64),
    asked: &[Asked],
    temperature: Temperature,
    answers: &mut Answers,
) -> Result<(), String> {
    let Some(first) = asked.iter().flat_map(|one| &one.own).next() else {
        return Ok(());
    };
    if !whole {
        return Err(lists_refused("rule", "accepts of", first.rule.name()));
    }
    for one in asked {
        let place = Place::new(temperature, one.drafts);
        for asked in &one.own {
            let rate = asked.rule.asked(OwnRow {
                target,
                draft,
                drafts: one.drafts,
                position: of.0,
                seed: of.1,
            })?;
            let mut insert = |about: AboutOwn, value: Known| {
                let own = asked.own;
                answers.insert(Metric::Own { place, own, about }, value);
            };
            insert(AboutOwn::Acceptance, Known::float(rate.membership));
            let more = [
                (AboutOwn::Algorithmic, rate.algorithmic),
                (AboutOwn::TotalVariation, rate.total_variation),
            ];
            for (about, value) in more {
                if let Some(value) = value {
                    insert(about, Known::float(value));
                }
            }
        }
        for asked in &one.own {
            differences(asked, place, answers)?;
        }
    }
    Ok(())
}

/// Its gap, and how much more it accepts than others.
fn differences(asked: &OwnAsked, place: Place, answers: &mut Answers) -> Result<(), String> {
    let own = asked.own;
    let number = |about: AboutOwn| Metric::Own { place, own, about };
    let rate = find(answers, number(AboutOwn::Acceptance))?;
    let best = find(answers, rate_of(place, asked.law, None))?;
    let lost = match asked.law {
        LawRef::Table(_) => gap(&best, &rate, false),
        // It need not be lossless.
        LawRef::Own(_) => gap_under(&best, &rate, false),
    };
    answers.insert(number(AboutOwn::Gap), lost);
    for &other in &asked.pairs {
        let less = rate.minus(&find(answers, other.rate(place))?);
        answers.insert(number(AboutOwn::Less(other)), less);
    }
    Ok(())
}
