package harness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var updatePictures = flag.Bool("update-pictures", false, "write the pictures of the page in testdata/page: look at them before they are committed")

// Looks are the sizes and colours that the page is looked at in. A picture has them side by side, the light ones above the dark ones.
var Looks = []View{
	{Width: 390, Height: 844},
	{Width: 1024, Height: 768},
	{Width: 1440, Height: 900},
	{Width: 390, Height: 844, Dark: true},
	{Width: 1024, Height: 768, Dark: true},
	{Width: 1440, Height: 900, Dark: true},
}

const (
	cell       = 8     // pixels of a picture, each of which is two of the page, whose brightness is compared at once
	brightness = 28    // of 255: cells whose brightness differs by more differ
	differing  = 0.005 // the share of a look's cells that may differ: other fonts set texts a little differently
)

// place is where the nth look is in a picture, which has half of its size.
func place(looks []View, n int) image.Rectangle {
	columns := len(looks) / 2
	x, y := 0, 0
	for _, left := range looks[n/columns*columns : n] {
		x += left.Width / 2
	}
	if n >= columns {
		y = 450
	}
	return image.Rect(x, y, x+looks[n].Width/2, y+looks[n].Height/2)
}

// Look shows what the tab shows in each size and colour, or in those of some widths, and compares it with the picture testdata/page/NAME.png.
// It has axe-core check the first and the last size, and the contrast of dark colours. The tab has its usual size then.
func (b *Tab) Look(name string, widths ...int) {
	b.T.Helper()
	looks := slices.DeleteFunc(slices.Clone(Looks), func(v View) bool { return len(widths) > 0 && !slices.Contains(widths, v.Width) })
	path := filepath.Join("testdata", "page", name+".png")
	golden := image.NewRGBA(image.Rectangle{})
	if *updatePictures {
		last := place(looks, len(looks)-1)
		golden = image.NewRGBA(image.Rect(0, 0, last.Max.X, last.Max.Y))
	} else if err := readPicture(path, &golden); err != nil {
		b.T.Errorf("%v: run this test with -update-pictures, and look at it", err)
	}
	b.Do(chromedp.MouseEvent(input.MouseMoved, 0, 0)) // it points at nothing
	for n, look := range looks {
		b.Show(look)
		title := fmt.Sprintf("%s-%d-dark=%v", name, look.Width, look.Dark)
		switch n {
		case 0, len(looks)/2 - 1:
			b.CheckAccess(title)
		case len(looks) - 1:
			b.runAxe(title, `{ resultTypes: ["violations"], runOnly: ["color-contrast"] }`)
		default:
			b.checkWidth(title)
		}
		b.Screenshot(title)
		if *updatePictures {
			draw.Draw(golden, place(looks, n), b.picture(), image.Point{}, draw.Src)
			continue
		}
		want := golden.SubImage(place(looks, n)).(*image.RGBA)
		var share float64
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(100 * time.Millisecond) { // something may be drawn just now
			if share = difference(want, b.picture()); share <= differing || time.Now().After(deadline) {
				break
			}
		}
		b.T.Logf("%s: %.2f %% differs", title, share*100)
		if share > differing {
			b.T.Errorf("%s: %.1f %% of it differs from %s: if that is right, run this test with -update-pictures", title, share*100, path)
		}
	}
	if *updatePictures {
		writePicture(b.T, path, golden)
	}
	b.Show(View{})
}

// still is JavaScript that keeps from being seen what changes by itself or is the machine's: figures, times, identifiers, bars of memory, plots,
// lines of the log and messages. window.stir() undoes it.
const still = `(() => {
	const undo = [];
	const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (all.nextNode()) {
		const node = all.currentNode, was = node.data;
		const is = was.replace(/\b(resp|req|conv|lm|sk)[_-]\w+/g, "$1_id").replace(/just now|([\d.,]+ \w+ )+ago/g, "0 s ago")
			.replace(/(\/[\w.-]+){3,}/g, "/a/path").replace(/[\d.,]+ (?:ms|s|min)\b/g, "0 s").replace(/[\d.,]+ [KMG]iB\b/g, "0 GiB")
			.replace(/\b[A-Z][a-z]{2} \d+, \d+/g, "Jan 0, 0").replace(/\d[\d.,:]*/g, "0");
		if (is !== was) {
			node.data = is;
			undo.push(() => { if (node.data === is) node.data = was; });
		}
	}
	for (const e of document.querySelectorAll(".bar, .plot canvas, .log-line, .toasts")) {
		const was = e.style.visibility;
		e.style.visibility = "hidden";
		undo.push(() => { e.style.visibility = was; });
	}
	document.activeElement.blur?.(); // the caret blinks
	window.stir = () => undo.forEach((each) => each());
	return true;
})()`

// picture is the tab in half of its size, without what changes by itself.
func (b *Tab) picture() *image.RGBA {
	b.T.Helper()
	var shot []byte
	b.Eval(still, nil)
	b.Do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		shot, err = page.CaptureScreenshot().Do(ctx)
		return err
	}))
	b.Eval("window.stir(), true", nil)
	whole, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		b.T.Fatal(err)
	}
	full := image.NewRGBA(whole.Bounds())
	draw.Draw(full, full.Rect, whole, image.Point{}, draw.Src)
	half := image.NewRGBA(image.Rect(0, 0, full.Rect.Dx()/2, full.Rect.Dy()/2))
	for y := range half.Rect.Dy() {
		for x := range half.Rect.Dx() {
			above, below := full.PixOffset(2*x, 2*y), full.PixOffset(2*x, 2*y+1)
			mean := func(i int) uint8 { // of four
				sum := int(full.Pix[above+i]) + int(full.Pix[above+4+i]) + int(full.Pix[below+i]) + int(full.Pix[below+4+i])
				return uint8(sum / 4) //nolint:gosec // of 255 at most
			}
			half.SetRGBA(x, y, color.RGBA{mean(0), mean(1), mean(2), 255})
		}
	}
	return half
}

// difference is the share of cells whose brightness differs.
func difference(a, b *image.RGBA) float64 {
	size := b.Bounds().Size()
	if a.Bounds().Size() != size {
		return 1
	}
	cells, differ := 0, 0
	for y := 0; y < size.Y; y += cell {
		for x := 0; x < size.X; x += cell {
			cells++
			at := image.Rect(x, y, min(x+cell, size.X), min(y+cell, size.Y))
			if d := bright(a, at) - bright(b, at); d > brightness || d < -brightness {
				differ++
			}
		}
	}
	return float64(differ) / float64(cells)
}

// bright is the mean brightness of a part of a picture, 0 to 255.
func bright(of *image.RGBA, part image.Rectangle) int {
	part = part.Add(of.Bounds().Min)
	sum := 0
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			c := of.RGBAAt(x, y)
			sum += (299*int(c.R) + 587*int(c.G) + 114*int(c.B)) / 1000
		}
	}
	return sum / (part.Dx() * part.Dy())
}

func readPicture(path string, into **image.RGBA) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no picture %s", path)
	}
	if err != nil {
		return err
	}
	read, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	*into = image.NewRGBA(read.Bounds())
	draw.Draw(*into, read.Bounds(), read, image.Point{}, draw.Src)
	return nil
}

// writePicture writes a picture in few colours, which keeps it small.
func writePicture(t testing.TB, path string, of *image.RGBA) {
	t.Helper()
	counts := map[color.RGBA]int{}
	for y := range of.Rect.Dy() {
		for x := range of.Rect.Dx() {
			counts[coarse(of.RGBAAt(x, y))]++
		}
	}
	colors := commonest(counts)
	nearest := map[color.RGBA]uint8{}
	for c := range counts {
		nearest[c] = uint8(colors.Index(c)) //nolint:gosec // of at most 256
	}
	small := image.NewPaletted(of.Rect, colors)
	for y := range of.Rect.Dy() {
		for x := range of.Rect.Dx() {
			small.SetColorIndex(x, y, nearest[coarse(of.RGBAAt(x, y))])
		}
	}
	var encoded bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&encoded, small); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, encoded.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commonest returns up to 64 colours, the commonest first, none of which is close to another.
func commonest(counts map[color.RGBA]int) (colors color.Palette) {
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	for _, c := range all {
		isClose := slices.ContainsFunc(colors, func(other color.Color) bool {
			o := other.(color.RGBA)
			r, g, b := int(c.R)-int(o.R), int(c.G)-int(o.G), int(c.B)-int(o.B)
			return r*r+g*g+b*b < 24*24 && counts[c] < 2000 // surfaces hardly differ from each other, and are large
		})
		if !isClose && len(colors) < 64 {
			colors = append(colors, c)
		}
	}
	return colors
}

// coarse is a colour of which those that hardly differ are the same.
func coarse(c color.RGBA) color.RGBA {
	return color.RGBA{c.R&^3 | 2, c.G&^3 | 2, c.B&^3 | 2, 255}
}
