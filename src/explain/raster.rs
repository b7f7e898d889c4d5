//! Pictures as PNG.

use resvg::{tiny_skia, usvg};
use std::sync::{Arc, LazyLock};

/// Pixels of a picture's unit of length.
const SCALE: f32 = 2.0;

/// Why a picture cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum RasterError {
    /// It is no SVG document.
    #[error("not a picture: {0}")]
    Svg(#[from] usvg::Error),
    /// It has no size, or one that is too large.
    #[error("a picture of {0} × {1} pixels cannot be drawn")]
    Size(u32, u32),
    /// The pixels cannot be written.
    #[error("cannot write PNG: {0}")]
    Png(String),
}

/// Families of sans-serif fonts that systems have.
const SANS_SERIF: [&str; 6] = [
    "Arial",
    "Liberation Sans",
    "DejaVu Sans",
    "Noto Sans",
    "Helvetica",
    "Nimbus Sans",
];

/// The system's fonts, which captions are written in. `sans-serif` is one of the usual
/// families, or any other.
static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_system_fonts();
    let there: Vec<String> = fonts
        .faces()
        .flat_map(|face| face.families.iter().map(|(family, _)| family.clone()))
        .collect();
    let usual = there
        .iter()
        .find(|family| SANS_SERIF.contains(&family.as_str()));
    if let Some(family) = usual.or(there.first()) {
        fonts.set_sans_serif_family(family);
    }
    Arc::new(fonts)
});

/// An SVG document as a PNG file with two pixels to the unit. Captions need a font of
/// the system.
///
/// # Errors
/// [`RasterError`] if the document cannot be drawn.
pub fn png(svg: &str) -> Result<Vec<u8>, RasterError> {
    let options = usvg::Options {
        fontdb: Arc::clone(&FONTS),
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_str(svg, &options)?;
    let size = tree.size().to_int_size();
    let [width, height] = [size.width(), size.height()].map(|it| (it as f32 * SCALE) as u32);
    let pixels = tiny_skia::Pixmap::new(width, height);
    let mut pixels = pixels.ok_or(RasterError::Size(width, height))?;
    let transform = tiny_skia::Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    let png = pixels.encode_png();
    png.map_err(|error| RasterError::Png(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_drawn() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"3\" height=\"2\">\
                   <rect width=\"1\" height=\"2\" fill=\"#0072b2\"/></svg>";
        let drawn = tiny_skia::Pixmap::decode_png(&png(svg).unwrap()).unwrap();
        assert_eq!((drawn.width(), drawn.height()), (6, 4));
        let colour = |x| drawn.pixel(x, 1).unwrap().demultiply();
        let blue = tiny_skia::ColorU8::from_rgba(0x00, 0x72, 0xb2, 255);
        assert_eq!((colour(0), colour(1)), (blue, blue));
        assert_eq!(colour(3).alpha(), 0);
        assert!(matches!(png("<svg"), Err(RasterError::Svg(_))));
    }

    #[test]
    fn captions_are_written() {
        if FONTS.is_empty() {
            crate::skip::skip("a font");
            return;
        }
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\">\
                   <text y=\"15\" font-family=\"sans-serif\" font-size=\"15\">head 1</text></svg>";
        let drawn = tiny_skia::Pixmap::decode_png(&png(svg).unwrap()).unwrap();
        assert!(drawn.pixels().iter().any(|pixel| pixel.alpha() == 255));
    }
}
