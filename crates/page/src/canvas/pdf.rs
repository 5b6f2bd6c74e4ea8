//! A picture as a PDF page with its letters inside.
//!
//! The font is cut to the letters of the picture and embedded, so that the page looks the same
//! on a machine without fonts. Nothing in the bytes depends on the time or the machine.

use super::{Align, Canvas, DrawError, FONT, Ink, Mark, Shape};
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Name, Pdf, Rect, Ref, Str, TextStr};
use sha2::{Digest, Sha256};
use specgap_base::sorted::Map;
use std::collections::BTreeSet;
use subsetter::GlyphRemapper;

/// Points of a page for a pixel of the canvas, as browsers print them.
const POINT: f64 = 0.75;
/// A circle as four curves: how far their handles reach, in radii.
const HANDLE: f64 = 0.552_284_749_831;
/// How hard streams are compressed, of 10.
const COMPRESSION: u8 = 9;

const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const INFO: Ref = Ref::new(5);
const TYPEFACE: Ref = Ref::new(6);
const CID_FONT: Ref = Ref::new(7);
const DESCRIPTOR: Ref = Ref::new(8);
const FONT_FILE: Ref = Ref::new(9);
const TO_UNICODE: Ref = Ref::new(10);
/// The first of the opacities.
const OPACITIES: i32 = 11;

const FONT_NAME: Name<'static> = Name(b"F");
const IDENTITY: SystemInfo<'static> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};

impl Canvas {
    /// A PDF of one page without margins, on no background. Letters are text, of a font that
    /// is embedded. The same picture gives the same bytes.
    ///
    /// # Errors
    /// A font that cannot be cut; the one that is shipped can.
    pub fn pdf(&self, title: &str, description: &str) -> Result<Vec<u8>, DrawError> {
        let letters = Letters::of(self)?;
        let opacities = self.opacities();
        let mut pdf = Pdf::new();
        pdf.catalog(CATALOG).pages(PAGES);
        pdf.pages(PAGES).kids([PAGE]).count(1);
        let mut page = pdf.page(PAGE);
        let [width, height] = [self.width, self.height].map(|size| points(f64::from(size)));
        page.media_box(Rect::new(0.0, 0.0, width, height));
        page.parent(PAGES);
        page.contents(CONTENT);
        let mut resources = page.resources();
        resources.fonts().pair(FONT_NAME, TYPEFACE);
        let mut states = resources.ext_g_states();
        for (number, percent) in (OPACITIES..).zip(&opacities) {
            states.pair(Name(state(*percent).as_bytes()), Ref::new(number));
        }
        drop(states);
        drop(resources);
        drop(page);
        for (number, percent) in (OPACITIES..).zip(&opacities) {
            pdf.ext_graphics(Ref::new(number))
                .non_stroking_alpha(f32::from(*percent) / 100.0);
        }
        let content = compressed(&self.content(&letters));
        pdf.stream(CONTENT, &content).filter(Filter::FlateDecode);
        letters.write(&mut pdf);
        pdf.document_info(INFO)
            .title(TextStr(title))
            .subject(TextStr(description))
            .producer(TextStr(concat!("specgap ", env!("CARGO_PKG_VERSION"))));
        Ok(pdf.finish())
    }

    /// Opacities of blocks that are not opaque, in percent.
    fn opacities(&self) -> BTreeSet<u8> {
        let blocks = self.marks.iter().filter_map(|mark| match &mark.1 {
            Shape::Block(_, opacity) => Some(percent(*opacity)),
            _ => None,
        });
        blocks.filter(|percent| *percent < 100).collect()
    }

    /// Returns what is drawn, in the operators of a page.
    fn content(&self, letters: &Letters<'_>) -> Vec<u8> {
        let height = f64::from(self.height);
        let place = |(x, y): (f64, f64)| (points(x), points(height - y));
        let mut content = Content::new();
        for Mark(ink, shape) in &self.marks {
            let [red, green, blue] = colour(*ink);
            match shape {
                Shape::Line(line, width) => {
                    content.set_stroke_rgb(red, green, blue);
                    content.set_line_width(points(*width));
                    for (index, point) in line.iter().enumerate() {
                        let (x, y) = place(*point);
                        match index {
                            0 => content.move_to(x, y),
                            _ => content.line_to(x, y),
                        };
                    }
                    content.stroke();
                }
                Shape::Block([one, other], opacity) => {
                    let ((x0, y0), (x1, y1)) = (place(*one), place(*other));
                    let percent = percent(*opacity);
                    content.save_state();
                    if percent < 100 {
                        content.set_parameters(Name(state(percent).as_bytes()));
                    }
                    content.set_fill_rgb(red, green, blue);
                    content.rect(x0.min(x1), y0.min(y1), (x1 - x0).abs(), (y1 - y0).abs());
                    content.fill_nonzero();
                    content.restore_state();
                }
                Shape::Disc((x, y), radius) => {
                    content.set_fill_rgb(red, green, blue);
                    let at = |right: f64, up: f64| place((x + right * radius, y - up * radius));
                    let (start_x, start_y) = at(1.0, 0.0);
                    content.move_to(start_x, start_y);
                    for [one, other, end] in [
                        [(1.0, HANDLE), (HANDLE, 1.0), (0.0, 1.0)],
                        [(-HANDLE, 1.0), (-1.0, HANDLE), (-1.0, 0.0)],
                        [(-1.0, -HANDLE), (-HANDLE, -1.0), (0.0, -1.0)],
                        [(HANDLE, -1.0), (1.0, -HANDLE), (1.0, 0.0)],
                    ] {
                        let [(x1, y1), (x2, y2), (x3, y3)] =
                            [one, other, end].map(|(right, up)| at(right, up));
                        content.cubic_to(x1, y1, x2, y2, x3, y3);
                    }
                    content.fill_nonzero();
                }
                Shape::Text(text, (x, y), size, align) => {
                    let back = match align {
                        Align::Left => 0.0,
                        Align::Centre => letters.width(text) * size / 2.0,
                        Align::Right => letters.width(text) * size,
                    };
                    // Centred by the height of its small letters, as in an SVG.
                    let (x, y) = place((x - back, y + letters.small_letters * size / 2.0));
                    content.set_fill_rgb(red, green, blue);
                    content.begin_text();
                    content.set_font(FONT_NAME, points(*size));
                    content.next_line(x, y);
                    content.show(Str(&letters.written(text)));
                    content.end_text();
                }
            }
        }
        content.finish().into_vec()
    }
}

fn points(pixels: f64) -> f32 {
    (pixels * POINT) as f32
}

fn percent(opacity: f64) -> u8 {
    (opacity * 100.0).round().clamp(0.0, 100.0) as u8
}

/// The name of an opacity on the page.
fn state(percent: u8) -> String {
    format!("A{percent}")
}

fn colour(ink: Ink) -> [f32; 3] {
    ink.on_paper().map(|part| f32::from(part) / 255.0)
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(bytes, COMPRESSION)
}

/// Returns how high a letter is; no table of the font has heights.
fn height(face: &ttf_parser::Face<'_>, letter: char) -> i16 {
    let glyph = face.glyph_index(letter);
    let bounds = glyph.and_then(|glyph| face.glyph_bounding_box(glyph));
    bounds.map_or(0, |bounds| bounds.y_max)
}

/// A letter in the font that is embedded.
#[derive(Clone, Copy)]
struct Letter {
    glyph: u16,
    /// In units of the font.
    width: u16,
}

/// The letters of a picture, and the font that has these alone.
struct Letters<'a> {
    face: ttf_parser::Face<'a>,
    letters: Map<char, Letter>,
    /// Their height, for a size of 1.
    small_letters: f64,
    /// The font file.
    file: Vec<u8>,
    /// Its name, other for each set of letters, so that programs that put pages together take
    /// no set for another.
    name: String,
}

impl Letters<'_> {
    fn of(canvas: &Canvas) -> Result<Self, DrawError> {
        let failed = |error: &dyn std::fmt::Display| DrawError(error.to_string());
        let face = ttf_parser::Face::parse(FONT, 0).map_err(|error| failed(&error))?;
        let texts = canvas.marks.iter().filter_map(|mark| match &mark.1 {
            Shape::Text(text, ..) => Some(text.as_str()),
            _ => None,
        });
        let used: BTreeSet<char> = texts.flat_map(str::chars).collect();
        let mut glyphs = GlyphRemapper::new();
        let mut letters = Map::new();
        for letter in used {
            // A letter that the font lacks is its empty box.
            let glyph = face.glyph_index(letter).unwrap_or(ttf_parser::GlyphId(0));
            let width = face.glyph_hor_advance(glyph).unwrap_or(0);
            let glyph = glyphs.remap(glyph.0);
            letters.insert(letter, Letter { glyph, width });
        }
        let file = subsetter::subset(FONT, 0, &glyphs).map_err(|error| failed(&error))?;
        let digest = Sha256::digest(&file);
        let tag = (digest.iter())
            .take(6)
            .map(|byte| char::from(b'A' + byte % 26));
        let units = f64::from(face.units_per_em());
        Ok(Self {
            small_letters: f64::from(height(&face, 'x')) / units,
            name: format!("{}+DejaVuSans", tag.collect::<String>()),
            face,
            letters,
            file,
        })
    }

    /// Of a text, for a size of 1.
    fn width(&self, text: &str) -> f64 {
        let letters = text.chars().filter_map(|letter| self.letters.get(&letter));
        let units: f64 = letters.map(|letter| f64::from(letter.width)).sum();
        units / f64::from(self.face.units_per_em())
    }

    /// A text as the numbers of its glyphs.
    fn written(&self, text: &str) -> Vec<u8> {
        let letters = text.chars().filter_map(|letter| self.letters.get(&letter));
        letters
            .flat_map(|letter| letter.glyph.to_be_bytes())
            .collect()
    }

    fn write(&self, pdf: &mut Pdf) {
        let name = Name(self.name.as_bytes());
        // Fonts are measured in thousandths.
        let scale = 1000.0 / f32::from(self.face.units_per_em());
        let scaled = |units: i16| f32::from(units) * scale;
        pdf.type0_font(TYPEFACE)
            .base_font(name)
            .encoding_predefined(Name(b"Identity-H"))
            .descendant_font(CID_FONT)
            .to_unicode(TO_UNICODE);
        let mut font = pdf.cid_font(CID_FONT);
        font.subtype(CidFontType::Type2)
            .base_font(name)
            .system_info(IDENTITY)
            .font_descriptor(DESCRIPTOR)
            .default_width(0.0)
            .cid_to_gid_map_predefined(Name(b"Identity"));
        let by_glyph: Map<u16, (char, u16)> = (self.letters.iter())
            .map(|(letter, at)| (at.glyph, (*letter, at.width)))
            .collect();
        let mut widths = font.widths();
        for (glyph, (_, width)) in &by_glyph {
            widths.same(*glyph, *glyph, f32::from(*width) * scale);
        }
        drop(widths);
        drop(font);
        let box_of = self.face.global_bounding_box();
        let bounds = Rect::new(
            scaled(box_of.x_min),
            scaled(box_of.y_min),
            scaled(box_of.x_max),
            scaled(box_of.y_max),
        );
        pdf.font_descriptor(DESCRIPTOR)
            .name(name)
            .flags(FontFlags::NON_SYMBOLIC)
            .bbox(bounds)
            .italic_angle(0.0)
            .ascent(scaled(self.face.ascender()))
            .descent(scaled(self.face.descender()))
            .cap_height(scaled(height(&self.face, 'H')))
            // No table has it; it matters where a viewer makes up a font, and here none has to.
            .stem_v(80.0)
            .font_file2(FONT_FILE);
        let file = compressed(&self.file);
        pdf.stream(FONT_FILE, &file)
            .filter(Filter::FlateDecode)
            .pair(Name(b"Length1"), self.file.len() as i32);
        let mut map = UnicodeCmap::new(Name(b"Letters"), IDENTITY);
        for (glyph, (letter, _)) in by_glyph {
            map.pair(glyph, letter);
        }
        let map = compressed(map.finish().as_slice());
        pdf.cmap(TO_UNICODE, &map).filter(Filter::FlateDecode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Canvas {
        let mut canvas = Canvas::new(200, 100);
        canvas.head("Title", (10.0, 15.0), 15.0, 30);
        canvas.line(&[(10.0, 40.0), (190.0, 90.0)], Ink::Hue(0), 2.0);
        canvas.block([(20.0, 50.0), (60.0, 80.0)], Ink::Hue(1), 0.25);
        canvas.ring((100.0, 70.0), 4.0, Ink::Hue(2));
        canvas.text("α* ≤ 0.56", (190.0, 60.0), 13.0, Align::Right, Ink::Text);
        canvas
    }

    /// Returns what stands between two marks of a stream, inflated.
    fn streams(pdf: &[u8]) -> Vec<Vec<u8>> {
        let find = |from: usize, mark: &[u8]| {
            let at = pdf[from..].windows(mark.len()).position(|w| w == mark);
            at.map(|at| from + at)
        };
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(start) = find(from, b"\nstream\n") {
            let end = find(start, b"\nendstream").unwrap();
            let bytes = &pdf[start + 8..end];
            found.push(miniz_oxide::inflate::decompress_to_vec_zlib(bytes).unwrap());
            from = end;
        }
        found
    }

    #[test]
    fn a_page_has_its_letters_and_the_same_bytes_each_time() {
        let canvas = picture().untitled();
        let pdf = canvas.pdf("t", "d").unwrap();
        assert_eq!(pdf, picture().untitled().pdf("t", "d").unwrap());
        let whole = String::from_utf8_lossy(&pdf);
        // 200 by 70 pixels: the title's strip is gone.
        assert!(whole.starts_with("%PDF-"), "{whole}");
        assert!(whole.contains("/MediaBox [0 0 150 52.5]"), "{whole}");
        assert!(whole.contains("/FontFile2") && whole.contains("+DejaVuSans"));
        assert!(!whole.contains("Date"), "{whole}");
        let streams = streams(&pdf);
        let [content, font, letters] = &streams[..] else {
            panic!("{} streams", streams.len());
        };
        let content = String::from_utf8_lossy(content);
        for operator in [" l\n", "/A25 gs\n", " c\n", " Tj\n"] {
            assert!(content.contains(operator), "{operator}: {content}");
        }
        // A font that parses, of the eight letters and the empty box alone.
        let face = ttf_parser::Face::parse(font, 0).unwrap();
        assert_eq!(face.number_of_glyphs(), 1 + 8);
        assert!(font.len() < FONT.len() / 10, "{}", font.len());
        let letters = String::from_utf8_lossy(letters);
        for letter in ["<03B1>", "<2264>", "<0035>"] {
            assert!(letters.contains(letter), "{letter}: {letters}");
        }
        assert!(!letters.contains("<0054>"), "the title's T: {letters}");
    }

    #[test]
    fn texts_stand_where_an_svg_has_them() {
        let letters = Letters::of(&picture()).unwrap();
        // DejaVu Sans: a digit is 1303 of 2048 units wide, an x is 1120 high.
        assert!((letters.width("00") - 2.0 * 1303.0 / 2048.0).abs() < 1e-12);
        assert!((letters.small_letters - 1120.0 / 2048.0).abs() < 1e-12);
        assert_eq!(letters.written("00").len(), 4);
    }
}
