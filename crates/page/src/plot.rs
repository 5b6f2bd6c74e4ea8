//! Charts: pure functions from numbers to a picture.
//!
//! All are narrow enough for a phone's screen; what the lines mean stands under them.

use super::canvas::{Align, Canvas, Ink};
use super::csv;
use super::words::range;

mod panels;
mod pgf;

pub use panels::PanelPlot;

/// Least width, of the overlap's and of every line chart.
const WIDTH: f64 = 480.0;
const TITLE: f64 = 15.0;
/// Height of the strip that the title stands in.
const HEAD: u32 = 30;
const LABEL: f64 = 13.0;
const MARGIN: f64 = 10.0;
/// Width of the piece of a line that stands before its label.
const SWATCH: f64 = 40.0;
/// Distance of two labels under a chart.
const APART: f64 = 20.0;
/// Half the width of a band where a point would be.
const BAND: f64 = 3.0;
/// Where the name of a y axis stands.
const Y_LABEL_AT: (f64, f64) = (MARGIN, 41.0);

/// A picture under its title.
fn headed(title: &str, width: f64, height: f64) -> Canvas {
    let mut canvas = Canvas::new(width.ceil() as u32, height.ceil() as u32);
    canvas.head(title, (MARGIN, 20.0), TITLE, HEAD);
    canvas
}

/// Returns how wide the widest of some texts is.
fn widest<'a>(texts: impl Iterator<Item = &'a str>, size: f64) -> f64 {
    texts
        .map(|text| Canvas::text_width(text, size))
        .fold(0.0, f64::max)
}

/// Lines over a few places, each point with its interval if it has one.
///
/// # Example
/// ```
/// use specgap_page::plot::{Axis, Line, LinePlot, Point};
///
/// let points = vec![Point::new(1.0, 0.5), Point::new(2.0, 0.75)];
/// let line = Line { label: "a".into(), points, ..Line::default() };
/// let plot = LinePlot {
///     title: "t".into(),
///     x: Axis { label: "n".into(), stops: vec![(1.0, "1".into()), (2.0, "2".into())], log: false },
///     y_label: "rate".into(),
///     lines: vec![line],
///     ..LinePlot::default()
/// };
/// assert!(plot.draw().svg("t", "a rises")?.starts_with("<svg"));
/// # Ok::<(), specgap_page::DrawError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinePlot {
    /// Title.
    pub title: String,
    /// The x axis.
    pub x: Axis,
    /// Over the y axis.
    pub y_label: String,
    /// The y axis shows shares in percent.
    pub percent: bool,
    /// Bounds that the y axis has at least to cover.
    pub y_covers: Option<[f64; 2]>,
    /// The lines.
    pub lines: Vec<Line>,
    /// Lines of text under the labels of the lines.
    pub remarks: Vec<String>,
}

/// An axis and the places on it that have a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// Places with their names, ascending.
    pub stops: Vec<(f64, String)>,
    /// Equal factors take equal room; all places are then above 0.
    pub log: bool,
}

impl Axis {
    /// An axis on which equal differences take equal room.
    pub fn new(label: impl Into<String>, stops: impl IntoIterator<Item = (f64, String)>) -> Self {
        Self {
            label: label.into(),
            stops: stops.into_iter().collect(),
            log: false,
        }
    }

    /// Its first and its last place.
    fn ends(&self) -> [f64; 2] {
        let stops = || self.stops.iter().map(|(x, _)| *x);
        [
            stops().fold(f64::INFINITY, f64::min),
            stops().fold(f64::NEG_INFINITY, f64::max),
        ]
    }
}

/// One line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// What it shows.
    pub label: String,
    /// Its colour; the same number is the same colour on every chart.
    pub hue: usize,
    /// Solid, or one of a few kinds of dashes.
    pub stroke: Stroke,
    /// The points, by ascending x.
    pub points: Vec<Point>,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stroke {
    /// Solid and thicker, with discs: what others are measured against.
    #[default]
    Solid,
    /// Dashes, the same for equal numbers, with rings.
    Dashed(usize),
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where on the x axis.
    pub x: f64,
    /// Where on the y axis.
    pub y: f64,
    /// What the value may be; drawn where it is wider than a point.
    pub interval: [f64; 2],
    /// Nothing is known but that the value lies in the interval: a band stands there, no mark,
    /// and the line does not go through it.
    pub open: bool,
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            interval: [y; 2],
            open: false,
        }
    }

    /// A point that is only known to lie between two bounds.
    pub fn between(x: f64, [low, high]: [f64; 2]) -> Self {
        Self {
            interval: [low, high],
            open: true,
            ..Self::new(x, (low + high) / 2.0)
        }
    }

    /// Its value, in these words; its bounds where only these are known.
    pub fn said(&self, number: impl Fn(f64) -> String) -> String {
        match self.open {
            true => range(self.interval, number),
            false => number(self.y),
        }
    }
}

/// Told apart at a glance, and in a legend's swatch.
const DASHES: [&[f64]; 6] = [
    &[6.0, 4.0],
    &[2.0, 3.0],
    &[9.0, 3.0, 2.0, 3.0],
    &[16.0, 4.0],
    &[9.0, 3.0, 2.0, 3.0, 2.0, 3.0],
    &[1.0, 5.0],
];

impl Line {
    /// A solid line.
    pub fn solid(
        label: impl Into<String>,
        hue: usize,
        points: impl IntoIterator<Item = Point>,
    ) -> Self {
        Self {
            label: label.into(),
            hue,
            points: points.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns it with dashes, the same for equal numbers.
    pub fn dashed(self, kind: usize) -> Self {
        Self {
            stroke: Stroke::Dashed(kind),
            ..self
        }
    }

    pub(super) fn dashes(&self) -> &'static [f64] {
        match self.stroke {
            Stroke::Solid => &[],
            Stroke::Dashed(index) => DASHES[index % DASHES.len()],
        }
    }

    fn thickness(&self) -> f64 {
        match self.stroke {
            Stroke::Solid => 2.2,
            Stroke::Dashed(_) => 1.5,
        }
    }

    pub(super) fn ink(&self) -> Ink {
        Ink::Hue(self.hue)
    }

    /// A piece of it with its label behind it.
    fn explain(&self, canvas: &mut Canvas, (left, y): (f64, f64)) {
        let swatch = [(left, y), (left + SWATCH, y)];
        canvas.dashed(&swatch, self.ink(), self.thickness(), self.dashes());
        self.mark(canvas, (left + SWATCH / 2.0, y));
        let at = (left + SWATCH + 8.0, y);
        canvas.text(&self.label, at, LABEL, Align::Left, Ink::Text);
    }

    fn mark(&self, canvas: &mut Canvas, at: (f64, f64)) {
        match self.stroke {
            Stroke::Solid => canvas.disc(at, 3.4, self.ink()),
            Stroke::Dashed(_) => canvas.ring(at, 3.4, self.ink()),
        }
    }
}

/// Where a chart's field is, and how values are placed in it.
struct Field {
    left: f64,
    right: f64,
    upper: f64,
    lower: f64,
    x: [f64; 2],
    y: [f64; 2],
    log: bool,
}

/// Room between the first and last place and the ends of the axis.
const INSET: f64 = 22.0;

impl Field {
    fn x_of(&self, x: f64) -> f64 {
        let scale = |x: f64| if self.log { x.max(1e-300).ln() } else { x };
        let [low, high] = self.x.map(scale);
        if high > low {
            let share = ((scale(x) - low) / (high - low)).clamp(0.0, 1.0);
            self.left + INSET + share * (self.right - self.left - 2.0 * INSET)
        } else {
            (self.left + self.right) / 2.0
        }
    }

    fn y_of(&self, y: f64) -> f64 {
        let [bottom, top] = self.y;
        let share = (y.clamp(bottom, top.max(bottom)) - bottom) / (top - bottom).max(1e-12);
        self.lower - share * (self.lower - self.upper)
    }
}

impl LinePlot {
    /// Lines over an axis.
    pub fn new(
        title: impl Into<String>,
        x: Axis,
        y_label: impl Into<String>,
        lines: Vec<Line>,
    ) -> Self {
        Self {
            title: title.into(),
            x,
            y_label: y_label.into(),
            lines,
            ..Self::default()
        }
    }

    /// The chart as a picture; a field without lines if there are no points.
    pub fn draw(&self) -> Canvas {
        let labels = self.lines.iter().map(|line| line.label.as_str());
        let remarks = self.remarks.iter().map(String::as_str);
        let width = WIDTH
            .max(widest(labels, LABEL) + SWATCH + 8.0 + 2.0 * MARGIN)
            .max(widest(remarks, LABEL) + 2.0 * MARGIN)
            .max(Canvas::text_width(&self.title, TITLE) + 2.0 * MARGIN);
        let (low, high) = self.y_bounds();
        let ticks = ticks(low, high, 6, self.percent);
        let [first, last] = ticks.ends();
        let (upper, plot_height) = (58.0, 270.0);
        let field = Field {
            left: 52.0,
            right: width - MARGIN,
            upper,
            lower: upper + plot_height,
            x: self.x.ends(),
            y: [low.min(first), high.max(last)],
            log: self.x.log,
        };
        let legend = field.lower + 62.0;
        let under = (self.lines.len() + self.remarks.len()) as f64 * APART;
        let height = legend + under + 4.0;
        let mut canvas = headed(&self.title, width, height);
        canvas.keep(self.data(), self.tex());
        canvas.text(&self.y_label, Y_LABEL_AT, LABEL, Align::Left, Ink::Quiet);
        self.axes(&mut canvas, &field, &ticks);
        self.curves(&mut canvas, &field);
        for (index, line) in self.lines.iter().enumerate() {
            line.explain(&mut canvas, (MARGIN, legend + index as f64 * APART));
        }
        for (index, remark) in self.remarks.iter().enumerate() {
            let y = legend + (self.lines.len() + index) as f64 * APART;
            canvas.text(remark, (MARGIN, y), LABEL, Align::Left, Ink::Quiet);
        }
        canvas
    }

    /// Every point, a row each.
    fn data(&self) -> String {
        let mut out = "line,x,y,low,high\n".to_owned();
        for line in &self.lines {
            for point in &line.points {
                let (x, [low, high]) = (point.x, point.interval);
                let y = match point.open {
                    true => String::new(),
                    false => point.y.to_string(),
                };
                out.push_str(&format!("{},{x},{y},{low},{high}\n", csv(&line.label)));
            }
        }
        out
    }

    /// The least and the largest y that is drawn, intervals included.
    fn y_bounds(&self) -> (f64, f64) {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let [low, high] = self.y_covers.unwrap_or([f64::INFINITY, f64::NEG_INFINITY]);
        (
            points().fold(low, |low, point| low.min(point.interval[0]).min(point.y)),
            points().fold(high, |high, point| high.max(point.interval[1]).max(point.y)),
        )
    }

    /// Both axes with what stands at them.
    fn axes(&self, canvas: &mut Canvas, field: &Field, ticks: &Ticks) {
        let Field {
            left, right, lower, ..
        } = *field;
        for &tick in &ticks.values {
            let y = field.y_of(tick);
            canvas.line(&[(left, y), (right, y)], Ink::Grid, 1.0);
            let place = (left - 7.0, y);
            canvas.text(&ticks.text(tick), place, LABEL, Align::Right, Ink::Quiet);
        }
        canvas.line(&[(left, lower), (right, lower)], Ink::Quiet, 1.0);
        for (stop, name) in &self.x.stops {
            let x = field.x_of(*stop);
            canvas.line(&[(x, lower), (x, lower + 5.0)], Ink::Quiet, 1.0);
            let place = (x, lower + 16.0);
            canvas.text(name, place, LABEL, Align::Centre, Ink::Quiet);
        }
        let place = ((left + right) / 2.0, lower + 37.0);
        canvas.text(&self.x.label, place, LABEL, Align::Centre, Ink::Quiet);
    }

    fn curves(&self, canvas: &mut Canvas, field: &Field) {
        // Verifiers first, so that what they are measured against lies on top.
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        order.sort_by_key(|&index| self.lines[index].stroke == Stroke::Solid);
        for index in order {
            let line = &self.lines[index];
            let aside = self.aside(index, field);
            let at = |x: f64, y: f64| (field.x_of(x) + aside, field.y_of(y));
            for point in &line.points {
                let [low, high] = point.interval;
                let ends = [at(point.x, low), at(point.x, high)];
                if point.open {
                    let [(x, bottom), (_, top)] = ends;
                    canvas.block([(x - BAND, top), (x + BAND, bottom)], line.ink(), 0.35);
                } else if high > low {
                    canvas.line(&ends, line.ink(), 1.0);
                }
            }
            for known in line.points.split(|point| point.open) {
                let points: Vec<_> = known.iter().map(|p| at(p.x, p.y)).collect();
                if points.len() > 1 {
                    canvas.dashed(&points, line.ink(), line.thickness(), line.dashes());
                }
                for point in points {
                    line.mark(canvas, point);
                }
            }
        }
    }

    /// Returns how far a line's points stand beside their place: those of different lines at
    /// one place would hide each other's intervals.
    fn aside(&self, index: usize, field: &Field) -> f64 {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let has_intervals = points().any(|point| point.interval[1] > point.interval[0]);
        let are_named = points().all(|point| self.x.stops.iter().any(|(x, _)| *x == point.x));
        if self.lines.len() < 2 || !has_intervals || !are_named {
            return 0.0;
        }
        let pairs = self.x.stops.windows(2);
        let nearest = pairs
            .map(|pair| field.x_of(pair[1].0) - field.x_of(pair[0].0))
            .fold(f64::INFINITY, f64::min);
        let spread = (nearest * 0.25).min(2.0 * INSET - 8.0);
        (index as f64 / (self.lines.len() - 1) as f64 - 0.5) * spread
    }
}

/// Where shares lie, in percent, a row for each of several groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxPlot {
    /// Title.
    pub title: String,
    /// Under the axis.
    pub label: String,
    /// The rows.
    pub rows: Vec<BoxRow>,
}

/// A row of a [`BoxPlot`].
#[derive(Clone, Debug, PartialEq)]
pub struct BoxRow {
    /// What stands beside the row.
    pub label: String,
    /// Quantiles at 5%, 25%, 50%, 75% and 95%.
    pub quantiles: [f64; 5],
    /// The mean.
    pub mean: f64,
}

impl BoxPlot {
    /// The chart as a picture.
    pub fn draw(&self) -> Canvas {
        let (left, right, upper, row_height) = (78.0, WIDTH - 96.0, 52.0, 34.0);
        let base = upper + self.rows.len() as f64 * row_height;
        let width = WIDTH.max(Canvas::text_width(&self.title, TITLE) + 2.0 * MARGIN);
        let mut canvas = headed(&self.title, width, base + 56.0);
        let mut data = "row,q05,q25,q50,q75,q95,mean\n".to_owned();
        for BoxRow {
            label,
            quantiles: [a, b, c, d, e],
            mean,
        } in &self.rows
        {
            data.push_str(&format!("{},{a},{b},{c},{d},{e},{mean}\n", csv(label)));
        }
        canvas.keep(data, self.tex());
        let x_of = |value: f64| left + value.clamp(0.0, 1.0) * (right - left);
        for step in 0..=5 {
            let value = f64::from(step) / 5.0;
            let x = x_of(value);
            canvas.line(&[(x, upper - 6.0), (x, base)], Ink::Grid, 1.0);
            let (name, place) = (format!("{:.0}", 100.0 * value), (x, base + 14.0));
            canvas.text(&name, place, LABEL, Align::Centre, Ink::Quiet);
        }
        let place = ((left + right) / 2.0, base + 36.0);
        canvas.text(&self.label, place, LABEL, Align::Centre, Ink::Quiet);
        for (index, row) in self.rows.iter().enumerate() {
            let y = upper + (index as f64 + 0.5) * row_height;
            let [low, lower, middle, higher, high] = row.quantiles.map(x_of);
            let hue = Ink::Hue(0);
            canvas.text(&row.label, (left - 12.0, y), LABEL, Align::Right, Ink::Text);
            canvas.line(&[(low, y), (high, y)], hue, 1.2);
            canvas.block([(lower, y - 6.0), (higher, y + 6.0)], hue, 0.35);
            canvas.line(&[(middle, y - 8.0), (middle, y + 8.0)], hue, 2.2);
            canvas.ring((x_of(row.mean), y), 4.0, Ink::Text);
            let (text, place) = (format!("mean {:.1}", 100.0 * row.mean), (right + 10.0, y));
            canvas.text(&text, place, LABEL, Align::Left, Ink::Text);
        }
        canvas
    }
}

/// What was had and what could be, in percent, a row for each of several groups: a bar from 0 up
/// to the best possible, a ring for each thing that was had, and a line for what the first one loses.
///
/// # Example
/// ```
/// use specgap_page::plot::{LossPlot, LossRow};
///
/// let row = LossRow { label: "a".into(), best: 0.6, best_label: "α* 0.6".into(), ..LossRow::default() };
/// let plot = LossPlot { title: "t".into(), label: "accepted".into(), rows: vec![row] };
/// assert!(plot.draw().svg("t", "a")?.contains("α*"));
/// # Ok::<(), specgap_page::DrawError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossPlot {
    /// Title.
    pub title: String,
    /// Under the axis.
    pub label: String,
    /// The rows.
    pub rows: Vec<LossRow>,
}

/// A row of a [`LossPlot`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossRow {
    /// What stands beside the row.
    pub label: String,
    /// Where the bar ends.
    pub best: f64,
    /// How far it may go beyond that, where no more is known: paler.
    pub best_to: Option<f64>,
    /// What is said of it.
    pub best_label: String,
    /// What was had, with names.
    pub marks: Vec<(f64, String)>,
    /// What was had, where it is only known to lie between two bounds: a bar with ends, no ring.
    pub ranges: Vec<([f64; 2], String)>,
    /// A loss, unless only bounds of it are known; what it may be; and what is said of it. The
    /// line ends where the bar does.
    pub loss: Option<(Option<f64>, [f64; 2], String)>,
}

/// Height of a bar.
const BAR: f64 = 15.0;

impl LossRow {
    fn is_drawn(&self) -> bool {
        let marks = self.marks.iter().map(|(at, _)| *at);
        let loss = (self.loss.iter()).flat_map(|(loss, ends, _)| ends.iter().chain(loss).copied());
        std::iter::once(self.best)
            .chain(self.best_to)
            .chain(marks)
            .chain(self.ranges.iter().flat_map(|(ends, _)| *ends))
            .chain(loss)
            .all(f64::is_finite)
    }

    /// The names of marks and ranges, and where they belong.
    fn names(&self) -> impl Iterator<Item = (f64, &str)> {
        let marks = self.marks.iter().map(|(at, name)| (*at, name.as_str()));
        let middle = |[low, high]: [f64; 2]| (low + high) / 2.0;
        let ranges = self.ranges.iter();
        marks.chain(ranges.map(move |(ends, name)| (middle(*ends), name.as_str())))
    }

    /// Room above the bar, for its names.
    fn above(&self) -> f64 {
        match self.names().next().is_none() {
            true => 21.0,
            false => 41.0,
        }
    }

    fn height(&self) -> f64 {
        let loss = if self.loss.is_some() { 21.0 } else { 0.0 };
        self.above() + BAR + loss + 13.0
    }
}

impl LossPlot {
    /// The chart as a picture. Rows with a number that is not finite are left out.
    pub fn draw(&self) -> Canvas {
        let rows: Vec<&LossRow> = self.rows.iter().filter(|row| row.is_drawn()).collect();
        let heads = rows.iter().map(|row| {
            Canvas::text_width(&row.label, LABEL)
                + Canvas::text_width(&row.best_label, LABEL)
                + 16.0
        });
        let names = rows.iter().map(|row| {
            let names = row.names();
            names
                .map(|(_, name)| Canvas::text_width(name, LABEL) + 10.0)
                .sum()
        });
        let title = std::iter::once(Canvas::text_width(&self.title, TITLE));
        let width = heads
            .chain(names)
            .chain(title)
            .fold(WIDTH - 2.0 * MARGIN, f64::max)
            + 2.0 * MARGIN;
        let upper = 40.0;
        let base = upper + rows.iter().map(|row| row.height()).sum::<f64>();
        let mut canvas = headed(&self.title, width, base + 46.0);
        let values = || {
            rows.iter().flat_map(|row| {
                let marks = row.marks.iter().map(|(at, _)| *at);
                let loss = row.loss.iter().map(|(_, ends, _)| row.best - ends[1]);
                let ranges = row.ranges.iter().flat_map(|(ends, _)| *ends);
                let best = std::iter::once(row.best).chain(row.best_to);
                best.chain(marks).chain(ranges).chain(loss)
            })
        };
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let ticks = ticks(low.min(0.0), high, 5, true);
        let ends = ticks.ends();
        canvas.keep(data_of(&rows), self.tex(&rows, ends));
        let (left, right) = (MARGIN + 14.0, width - MARGIN - 14.0);
        let x_of = |value: f64| {
            let share = (value - ends[0]) / (ends[1] - ends[0]).max(1e-12);
            left + share.clamp(0.0, 1.0) * (right - left)
        };
        for &tick in &ticks.values {
            let x = x_of(tick);
            canvas.line(&[(x, upper), (x, base)], Ink::Grid, 1.0);
            let place = (x, base + 13.0);
            canvas.text(&ticks.text(tick), place, LABEL, Align::Centre, Ink::Quiet);
        }
        let place = ((left + right) / 2.0, base + 33.0);
        canvas.text(&self.label, place, LABEL, Align::Centre, Ink::Quiet);
        let mut top = upper;
        for row in rows {
            draw_row(
                &mut canvas,
                row,
                top,
                [MARGIN, width - MARGIN],
                [left, right],
                &x_of,
            );
            top += row.height();
        }
        canvas
    }
}

fn data_of(rows: &[&LossRow]) -> String {
    let mut out = "row,what,value,low,high\n".to_owned();
    for row in rows {
        let label = csv(&row.label);
        out.push_str(&match row.best_to {
            Some(high) => format!("{label},{},,{},{high}\n", csv(&row.best_label), row.best),
            None => format!("{label},{},{},,\n", csv(&row.best_label), row.best),
        });
        for (at, name) in &row.marks {
            out.push_str(&format!("{label},{},{at},,\n", csv(name)));
        }
        for ([low, high], name) in &row.ranges {
            out.push_str(&format!("{label},{},,{low},{high}\n", csv(name)));
        }
        if let Some((loss, [low, high], words)) = &row.loss {
            let loss = loss.map_or_else(String::new, |loss| loss.to_string());
            out.push_str(&format!("{label},{},{loss},{low},{high}\n", csv(words)));
        }
    }
    out
}

fn draw_row(
    canvas: &mut Canvas,
    row: &LossRow,
    top: f64,
    edges: [f64; 2],
    [left, right]: [f64; 2],
    x_of: &dyn Fn(f64) -> f64,
) {
    let head = top + 10.0;
    canvas.text(&row.label, (edges[0], head), LABEL, Align::Left, Ink::Text);
    canvas.text(
        &row.best_label,
        (edges[1], head),
        LABEL,
        Align::Right,
        Ink::Quiet,
    );
    let (upper, end) = (top + row.above(), x_of(row.best));
    let middle = upper + BAR / 2.0;
    let blue = Ink::Hue(0);
    canvas.block([(left, upper), (end, upper + BAR)], blue, 0.3);
    match row.best_to.map(x_of) {
        Some(most) => {
            let beyond = [(end, upper), (most, upper + BAR)];
            canvas.block(beyond, blue, 0.12);
            for x in [end, most] {
                canvas.line(&[(x, upper), (x, upper + BAR)], blue, 1.0);
            }
        }
        None => canvas.line(&[(end, upper), (end, upper + BAR)], blue, 2.5),
    }
    // Names stand over their rings, and beside each other where these are close.
    let mut marks: Vec<(f64, f64, &str)> = (row.names())
        .map(|(at, name)| (x_of(at), Canvas::text_width(name, LABEL), name))
        .collect();
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut places: Vec<f64> = Vec::new();
    let mut free = edges[0];
    for (x, width, _) in &marks {
        let place = (x - width / 2.0).max(free);
        places.push(place);
        free = place + width + 10.0;
    }
    let mut limit = edges[1];
    for (place, (_, width, _)) in places.iter_mut().zip(&marks).rev() {
        *place = place.min(limit - width);
        limit = *place - 10.0;
    }
    let line = top + 29.0;
    for (&(x, width, name), &place) in marks.iter().zip(&places) {
        canvas.text(name, (place, line), LABEL, Align::Left, Ink::Text);
        let from = (
            x.clamp(place + 4.0, (place + width - 4.0).max(place + 4.0)),
            line + 7.0,
        );
        canvas.line(&[from, (x, middle - 4.0)], Ink::Quiet, 0.8);
    }
    for (at, _) in &row.marks {
        canvas.ring((x_of(*at), middle), 4.2, Ink::Text);
    }
    for (ends, _) in &row.ranges {
        let [low, high] = ends.map(x_of);
        canvas.line(&[(low, middle), (high, middle)], Ink::Text, 1.5);
        for x in [low, high] {
            canvas.line(&[(x, middle - 4.5), (x, middle + 4.5)], Ink::Text, 1.5);
        }
    }
    let Some((loss, interval, words)) = &row.loss else {
        return;
    };
    let (orange, y) = (Ink::Hue(1), upper + BAR + 11.0);
    // At least so much, where no more is known.
    let start = x_of(row.best - loss.unwrap_or(interval[0]));
    canvas.line(&[(start, y), (end, y)], orange, 3.0);
    let [least, most] = interval.map(|loss| x_of(row.best - loss));
    if most < least {
        canvas.line(&[(most, y), (least, y)], orange, 1.0);
        for x in [least, most] {
            canvas.line(&[(x, y - 4.5), (x, y + 4.5)], orange, 1.0);
        }
    }
    let width = Canvas::text_width(words, LABEL);
    if end + 8.0 + width <= right {
        canvas.text(words, (end + 8.0, y), LABEL, Align::Left, Ink::Text);
    } else {
        let at = (start.min(most) - 8.0, y);
        canvas.text(words, at, LABEL, Align::Right, Ink::Text);
    }
}

/// Round values between two bounds, at least one.
struct Ticks {
    values: Vec<f64>,
    decimals: usize,
    percent: bool,
}

impl Ticks {
    fn ends(&self) -> [f64; 2] {
        let edge = |value: Option<&f64>| value.copied().unwrap_or(0.0);
        [edge(self.values.first()), edge(self.values.last())]
    }

    fn text(&self, value: f64) -> String {
        match self.percent {
            true => format!("{:.*}", self.decimals.saturating_sub(2), 100.0 * value),
            false => format!("{value:.*}", self.decimals),
        }
    }
}

/// About `wanted` round values that enclose both bounds.
fn ticks(low: f64, high: f64, wanted: usize, percent: bool) -> Ticks {
    if !(low.is_finite() && high.is_finite()) || high < low {
        return Ticks {
            values: vec![0.0, 1.0],
            decimals: 1,
            percent,
        };
    }
    let span = (high - low).max(1e-4);
    let rough = span / wanted as f64;
    let power = 10f64.powi(rough.log10().floor() as i32);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|round| round * power);
    let step = steps.into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(power * 10.0);
    let first = (low / step + 1e-9).floor();
    let last = (high / step - 1e-9).ceil().max(first + 1.0);
    let steps = (last - first).clamp(0.0, 4.0 * wanted as f64) as usize;
    Ticks {
        values: (0..=steps).map(|k| (first + k as f64) * step).collect(),
        decimals: (-step.log10().floor()).clamp(0.0, 12.0) as usize,
        percent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_enclose_what_they_measure() {
        for (low, high) in [
            (0.5, 0.97),
            (0.9, 0.9),
            (0.0, 1.0),
            (0.99991, 0.99999),
            (0.62, 0.7),
        ] {
            let ticks = ticks(low, high, 6, false);
            assert!(
                ticks.values[0] <= low + 1e-9,
                "{low} {high} {:?}",
                ticks.values
            );
            assert!(*ticks.values.last().unwrap() >= high - 1e-9);
            assert!((2..=12).contains(&ticks.values.len()), "{:?}", ticks.values);
        }
    }

    /// Equal factors are equal distances, and everything is within the field.
    #[test]
    fn a_logarithmic_axis_places_by_factors() {
        let field = Field {
            left: 0.0,
            right: 200.0,
            upper: 0.0,
            lower: 100.0,
            x: [1e-4, 1.0],
            y: [0.0, 1.0],
            log: true,
        };
        let [a, b, c] = [1e-4, 1e-2, 1.0].map(|x| field.x_of(x));
        assert!((b - a - (c - b)).abs() < 1e-9);
        assert!((a, c) == (INSET, 200.0 - INSET));
        assert_eq!(field.x_of(0.0), a);
        assert_eq!(field.y_of(2.0), 0.0);
    }

    #[test]
    fn charts_of_nothing_can_be_drawn() {
        assert!(LinePlot::default().draw().svg("t", "d").is_ok());
        assert!(BoxPlot::default().draw().svg("t", "d").is_ok());
        assert!(LossPlot::default().draw().svg("t", "d").is_ok());
    }

    /// A paper has a caption of its own, and the numbers that are drawn.
    #[test]
    fn a_picture_for_a_paper_has_no_title_and_its_data_beside_it() {
        let line = Line::solid("rrs, \"top\"", 0, [Point::new(2.0, 0.5)]);
        let canvas = LinePlot::new("A title", Axis::default(), "rate", vec![line]).draw();
        let bare = canvas.untitled();
        let y_of = |canvas: &Canvas, wanted: &str| {
            let found = canvas.texts().find(|(text, _)| *text == wanted);
            found.map(|(_, (_, y))| y)
        };
        assert!(y_of(&canvas, "A title").is_some() && y_of(&bare, "A title").is_none());
        assert_eq!(
            y_of(&canvas, "rate"),
            y_of(&bare, "rate").map(|y| y + f64::from(HEAD))
        );
        assert!(y_of(&bare, "rate").is_some_and(|y| y > 5.0));
        assert_eq!(
            bare.data(),
            "line,x,y,low,high\n\"rrs, \"\"top\"\"\",2,0.5,0.5,0.5\n"
        );
    }

    /// What is only known between bounds has a band and no mark, and its middle stands nowhere.
    #[test]
    fn an_open_number_is_drawn_as_a_band() {
        let marks = |canvas: &Canvas| {
            let svg = canvas.svg("t", "d").unwrap();
            svg.matches("<circle").count()
        };
        let line = |other: Point| {
            let line = Line::solid("a", 0, [Point::new(1.0, 0.5), other]);
            LinePlot::new("", Axis::default(), "", vec![line]).draw()
        };
        let known = line(Point::new(2.0, 0.25));
        let open = line(Point::between(2.0, [0.125, 0.375]));
        assert_eq!(marks(&known) - marks(&open), 1);
        assert_eq!(
            open.data(),
            "line,x,y,low,high\na,1,0.5,0.5,0.5\na,2,,0.125,0.375\n"
        );

        let row = LossRow {
            label: "a".to_owned(),
            best: 0.5,
            best_to: Some(0.6),
            best_label: "b".to_owned(),
            ranges: vec![([0.3, 0.4], "c".to_owned())],
            ..LossRow::default()
        };
        let canvas = LossPlot {
            rows: vec![row],
            ..LossPlot::default()
        }
        .draw();
        assert_eq!(marks(&canvas), 0);
        assert_eq!(
            canvas.data(),
            "row,what,value,low,high\na,b,,0.5,0.6\na,c,,0.3,0.4\n"
        );
    }

    /// Names of rings at one place do not hide each other, nor leave the picture.
    #[test]
    fn names_of_close_rings_stand_beside_each_other() {
        let marks = ["rrs 0.599", "k-seq 0.599", "naive-tree 0.600"];
        let row = LossRow {
            best: 0.6,
            marks: marks.map(|name| (0.599, name.to_owned())).to_vec(),
            loss: Some((Some(0.001), [0.0005, 0.0015], "loses".to_owned())),
            ..LossRow::default()
        };
        let odd = LossRow {
            best: f64::NAN,
            label: "odd".to_owned(),
            ..LossRow::default()
        };
        let plot = LossPlot {
            rows: vec![row, odd],
            ..LossPlot::default()
        };
        let canvas = plot.draw();
        let mut spans: Vec<[f64; 2]> = (canvas.texts())
            .filter(|(text, _)| marks.contains(text))
            .map(|(text, at)| [at.0, at.0 + Canvas::text_width(text, LABEL)])
            .collect();
        spans.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert_eq!(spans.len(), 3);
        assert!(
            spans.windows(2).all(|pair| pair[0][1] < pair[1][0]),
            "{spans:?}"
        );
        assert!(spans[0][0] >= 0.0 && spans[2][1] <= f64::from(canvas.width()));
        assert!(canvas.texts().all(|(text, _)| text != "odd"));
    }
}
