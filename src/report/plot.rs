//! Charts: pure functions from numbers to a picture.
//!
//! All are narrow enough for a phone's screen; what the lines mean stands under them.

use super::canvas::{Align, Canvas, Ink};

/// Least width, of the overlap's and of every line chart.
const WIDTH: f64 = 480.0;
const TITLE: f64 = 15.0;
const LABEL: f64 = 13.0;
const MARGIN: f64 = 10.0;
/// Width of the piece of a line that stands before its label.
const SWATCH: f64 = 40.0;
/// Distance of two labels under a chart.
const APART: f64 = 20.0;

/// Lines over a few places, each point with its interval if it has one.
///
/// # Example
/// ```
/// use specgap::report::plot::{Axis, Line, LinePlot, Point};
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
/// # Ok::<(), specgap::report::DrawError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinePlot {
    /// Title.
    pub title: String,
    /// The x axis.
    pub x: Axis,
    /// Over the y axis.
    pub y_label: String,
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
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            interval: [y; 2],
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
    fn dashes(&self) -> &'static [f64] {
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

    fn ink(&self) -> Ink {
        Ink::Hue(self.hue)
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
    /// The chart as a picture; a field without lines if there are no points.
    pub fn draw(&self) -> Canvas {
        let labels = self.lines.iter().map(|line| line.label.as_str());
        let longest = |size: f64, texts: &mut dyn Iterator<Item = &str>| {
            texts
                .map(|text| Canvas::text_width(text, size))
                .fold(0.0, f64::max)
        };
        let width = WIDTH
            .max(longest(LABEL, &mut labels.into_iter()) + SWATCH + 8.0 + 2.0 * MARGIN)
            .max(longest(LABEL, &mut self.remarks.iter().map(String::as_str)) + 2.0 * MARGIN)
            .max(longest(TITLE, &mut std::iter::once(self.title.as_str())) + 2.0 * MARGIN);
        let ticks = self.ticks();
        let edge = |values: Option<&f64>, or: f64| values.copied().unwrap_or(or);
        let (low, high) = self.y_bounds();
        let stops = || self.x.stops.iter().map(|(x, _)| *x);
        let (upper, plot_height) = (58.0, 270.0);
        let field = Field {
            left: 52.0,
            right: width - MARGIN,
            upper,
            lower: upper + plot_height,
            x: [
                stops().fold(f64::INFINITY, f64::min),
                stops().fold(f64::NEG_INFINITY, f64::max),
            ],
            y: [
                low.min(edge(ticks.values.first(), low)),
                high.max(edge(ticks.values.last(), high)),
            ],
            log: self.x.log,
        };
        let legend = field.lower + 62.0;
        let under = (self.lines.len() + self.remarks.len()) as f64 * APART;
        let height = legend + under + 4.0;
        let mut canvas = Canvas::new(width.ceil() as u32, height.ceil() as u32);
        self.frame(&mut canvas, &field, &ticks);
        self.curves(&mut canvas, &field);
        for (index, line) in self.lines.iter().enumerate() {
            let y = legend + index as f64 * APART;
            let swatch = [(MARGIN, y), (MARGIN + SWATCH, y)];
            canvas.dashed(&swatch, line.ink(), line.thickness(), line.dashes());
            line.mark(&mut canvas, (MARGIN + SWATCH / 2.0, y));
            let at = (MARGIN + SWATCH + 8.0, y);
            canvas.text(&line.label, at, LABEL, Align::Left, Ink::Text);
        }
        for (index, remark) in self.remarks.iter().enumerate() {
            let y = legend + (self.lines.len() + index) as f64 * APART;
            canvas.text(remark, (MARGIN, y), LABEL, Align::Left, Ink::Quiet);
        }
        canvas
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

    fn ticks(&self) -> Ticks {
        let (low, high) = self.y_bounds();
        ticks(low, high, 6)
    }

    fn frame(&self, canvas: &mut Canvas, field: &Field, ticks: &Ticks) {
        let Field {
            left, right, lower, ..
        } = *field;
        let title_at = (MARGIN, 20.0);
        canvas.text(&self.title, title_at, TITLE, Align::Left, Ink::Text);
        let label_at = (MARGIN, 41.0);
        canvas.text(&self.y_label, label_at, LABEL, Align::Left, Ink::Quiet);
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
                if high > low {
                    let ends = [at(point.x, low), at(point.x, high)];
                    canvas.line(&ends, line.ink(), 1.0);
                }
            }
            let points: Vec<_> = line.points.iter().map(|p| at(p.x, p.y)).collect();
            if points.len() > 1 {
                canvas.dashed(&points, line.ink(), line.thickness(), line.dashes());
            }
            for point in points {
                line.mark(canvas, point);
            }
        }
    }

    /// How far a line's points stand beside their place: those of different lines at
    /// one place would hide each other's intervals.
    fn aside(&self, index: usize, field: &Field) -> f64 {
        let has_intervals = self
            .lines
            .iter()
            .flat_map(|line| &line.points)
            .any(|point| point.interval[1] > point.interval[0]);
        if self.lines.len() < 2 || !has_intervals {
            return 0.0;
        }
        let nearest = self
            .x
            .stops
            .windows(2)
            .map(|pair| field.x_of(pair[1].0) - field.x_of(pair[0].0))
            .fold(f64::INFINITY, f64::min);
        let spread = (nearest * 0.25).min(2.0 * INSET - 8.0);
        (index as f64 / (self.lines.len() - 1) as f64 - 0.5) * spread
    }
}

/// Where values lie within [0, 1], a row for each of several groups.
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
    /// Its name.
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
        let mut canvas = Canvas::new(width.ceil() as u32, (base + 56.0).ceil() as u32);
        let title_at = (MARGIN, 20.0);
        canvas.text(&self.title, title_at, TITLE, Align::Left, Ink::Text);
        let x_of = |value: f64| left + value.clamp(0.0, 1.0) * (right - left);
        for step in 0..=5 {
            let value = f64::from(step) / 5.0;
            let x = x_of(value);
            canvas.line(&[(x, upper - 6.0), (x, base)], Ink::Grid, 1.0);
            let (name, place) = (format!("{value:.1}"), (x, base + 14.0));
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
            let (text, place) = (format!("mean {:.3}", row.mean), (right + 10.0, y));
            canvas.text(&text, place, LABEL, Align::Left, Ink::Text);
        }
        canvas
    }
}

/// Round values between two bounds.
struct Ticks {
    values: Vec<f64>,
    decimals: usize,
}

impl Ticks {
    fn text(&self, value: f64) -> String {
        format!("{value:.*}", self.decimals)
    }
}

/// About `wanted` round values that enclose both bounds.
fn ticks(low: f64, high: f64, wanted: usize) -> Ticks {
    if !(low.is_finite() && high.is_finite()) || high < low {
        return Ticks {
            values: vec![0.0, 1.0],
            decimals: 1,
        };
    }
    let span = (high - low).max(1e-4);
    let rough = span / wanted as f64;
    let power = 10f64.powi(rough.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|round| round * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(power * 10.0);
    let first = (low / step + 1e-9).floor();
    let last = (high / step - 1e-9).ceil().max(first + 1.0);
    let steps = (last - first).clamp(0.0, 4.0 * wanted as f64) as usize;
    let values = (0..=steps).map(|k| (first + k as f64) * step).collect();
    let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    Ticks { values, decimals }
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
            let ticks = ticks(low, high, 6);
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
    }
}
