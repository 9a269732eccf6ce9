package harness

import (
	"image"
	"image/color"
	"image/draw"
	"testing"
)

// TestDifference: a text in a slightly different weight is the same, and a button that is missing isn't.
func TestDifference(t *testing.T) {
	t.Parallel()
	page := func(text uint8, hasButton bool) *image.RGBA {
		p := image.NewRGBA(image.Rect(0, 0, 195, 422))
		draw.Draw(p, p.Rect, image.White, image.Point{}, draw.Src)
		for y := 20; y < 400; y += 10 {
			draw.Draw(p, image.Rect(10, y, 180, y+2), image.NewUniform(color.Gray{text}), image.Point{}, draw.Src)
		}
		if hasButton {
			draw.Draw(p, image.Rect(120, 0, 180, 16), image.NewUniform(color.Gray{90}), image.Point{}, draw.Src)
		}
		return p
	}
	if d := difference(page(60, true), page(110, true)); d > differing {
		t.Errorf("%.3f of it differs, though only the weight of texts is another one", d)
	}
	if d := difference(page(60, true), page(60, false)); d <= differing {
		t.Errorf("%.3f of it differs, though a button is missing", d)
	}
}
