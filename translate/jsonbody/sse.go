package jsonbody

import (
	"bytes"
	"cmp"
)

// MaxFrame is the maximum size of a server-sent event of an engine. The longest events carry a whole tool call or a prompt.
const MaxFrame = 16 << 20

// DoneMark is the data of the frame that ends some streams.
var DoneMark = []byte("[DONE]")

// AppendFrame appends an event without a name: a data line and a blank line.
func AppendFrame(dst, data []byte) []byte {
	dst = append(dst, "data: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...)
}

// AppendEvent appends the beginning of an event with a name: its JSON has the name as type. [EndEvent] appends its end.
func AppendEvent(dst []byte, name string) []byte {
	dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
	return append(append(dst, name...), '"')
}

// EndEvent appends the end of an event.
func EndEvent(dst []byte) []byte { return append(dst, "}\n\n"...) }

// FrameData returns the data of a frame: the values of its data lines, joined by newlines. It is nil for comments.
func FrameData(frame []byte) []byte {
	var data []byte
	lines := 0
	for len(frame) > 0 {
		i := bytes.IndexByte(frame, '\n')
		line := bytes.TrimSuffix(frame[:i], []byte{'\r'})
		frame = frame[i+1:]
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		value = bytes.TrimPrefix(value, []byte{' '})
		switch lines++; lines {
		case 1:
			data = value // the common case copies nothing
		case 2:
			data = append(append(bytes.Clone(data), '\n'), value...)
		default:
			data = append(append(data, '\n'), value...)
		}
	}
	return data
}

// Frames splits a stream of server-sent events at the blank lines between them, wherever its reads end.
type Frames struct {
	Max int // size of a frame, in bytes; 0: MaxFrame

	rest []byte // an incomplete frame
	line int    // where its last line begins, which isn't complete either
}

// Feed calls each for every frame that p completes, in order. A frame has its lines with their line ends, without the
// final blank line. It is valid until each returns. ok is false if a frame is longer than Max.
func (f *Frames) Feed(p []byte, each func(frame []byte) error) (ok bool, err error) {
	most, line := cmp.Or(f.Max, MaxFrame), 0
	if len(f.rest) > 0 {
		p, line = append(f.rest, p...), f.line
	}
	whole := p
	for {
		end, next := cutFrame(p, line)
		if next < 0 {
			line = end
			break
		}
		frame := p[:end]
		p, line = p[next:], 0
		if len(frame) > most {
			f.rest = nil
			return false, nil
		}
		if len(frame) > 0 {
			if err := each(frame); err != nil {
				f.rest = nil
				return true, err
			}
		}
	}
	if f.line = line; len(f.rest) > 0 && len(p) == len(whole) {
		f.rest = whole // without a copy, of which there would be one for each read of a long frame
	} else {
		f.rest = append(f.rest[:0], p...)
	}
	return len(f.rest) <= most+1, nil // one more, for the CR of the blank line
}

// cutFrame finds the first blank line of p: where it begins and what is after it does. Lines end in LF or CRLF. Those before the one at
// line aren't blank. If none is, next is negative, and end is where the last line begins.
func cutFrame(p []byte, line int) (end, next int) {
	for {
		i := bytes.IndexByte(p[line:], '\n')
		if i < 0 {
			return line, -1
		}
		if i == 0 || i == 1 && p[line] == '\r' {
			return line, line + i + 1
		}
		line += i + 1
	}
}
