//! All draft laws.

use super::law::{Law, SchemeName};
use super::{
    composed, distinct_conditioned, explicit, greedy, hub, product, stratified, top,
    with_replacement, without_replacement,
};
use crate::entry_name::entry_table;

entry_table! {
    /// Every draft law, in the order of reports.
    pub const LAWS: [Law] as SchemeName; "draft scheme", UnknownScheme;
    /// [`WithReplacement`](super::WithReplacement)
    WITH_REPLACEMENT = with_replacement::LAW;
    /// [`WithoutReplacement`](super::WithoutReplacement)
    WITHOUT_REPLACEMENT = without_replacement::LAW;
    /// [`DistinctConditioned`](super::DistinctConditioned)
    DISTINCT_CONDITIONED = distinct_conditioned::LAW;
    /// [`Stratified`](super::Stratified), a token across a cut at most once.
    STRATIFIED = stratified::LAW;
    /// [`Stratified`](super::Stratified), strata drawn from independently.
    STRATIFIED_INDEPENDENT = stratified::INDEPENDENT;
    /// [`Greedy`](super::Greedy)
    GREEDY = greedy::LAW;
    /// [`Hub`](super::Hub)
    HUB = hub::LAW;
    /// [`Product`](super::Product)
    PRODUCT = product::LAW;
    /// [`Explicit`](super::Explicit)
    EXPLICIT = explicit::LAW;
    /// [`Top`](super::Top)
    TOP = top::LAW;
    /// [`Composed`](super::Composed)
    COMPOSED = composed::LAW;
}
