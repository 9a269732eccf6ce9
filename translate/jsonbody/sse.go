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
}

func (f *Frames) max() int { return cmp.Or(f.Max, MaxFrame) }

// Feed calls each for every frame that p completes, in order. A frame has its lines with their line ends, without the
// final blank line. It is valid until each returns. ok is false if a frame is longer than Max.
func (f *Frames) Feed(p []byte, each func(frame []byte) error) (ok bool, err error) {
	p, ok, err = f.complete(p, each)
	if !ok || err != nil || len(f.rest) > 0 {
		return ok, err
	}
	for {
		frame, rest, found := cutFrame(p)
		if !found {
			break
		}
		p = rest
		if len(frame) > f.max() {
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
	f.rest = append(f.rest[:0], p...)
	return len(f.rest) <= f.max()+1, nil // one more, for the CR of the blank line
}

// complete takes the rest of the incomplete frame from p, line by line, so that the frames after it aren't copied.
func (f *Frames) complete(p []byte, each func(frame []byte) error) (left []byte, ok bool, err error) {
	for len(f.rest) > 0 {
		i := bytes.IndexByte(p, '\n') + 1
		if i == 0 {
			f.rest = append(f.rest, p...)
			return nil, len(f.rest) <= f.max()+1, nil
		}
		f.rest = append(f.rest, p[:i]...)
		p = p[i:]
		frame, found := bytes.CutSuffix(f.rest, []byte("\n\r\n"))
		if !found {
			frame, found = bytes.CutSuffix(f.rest, []byte("\n\n"))
		}
		if isBlank := string(f.rest) == "\n" || string(f.rest) == "\r\n"; isBlank {
			frame, found = nil, true
		} else if found {
			frame = f.rest[:len(frame)+1] // with its own line end
		}
		switch {
		case !found && len(f.rest) > f.max()+1, found && len(frame) > f.max():
			f.rest = nil
			return nil, false, nil
		case !found:
			continue
		case len(frame) > 0:
			err = each(frame)
		}
		f.rest = f.rest[:0]
		if err != nil {
			return nil, true, err
		}
	}
	return p, true, nil
}

// cutFrame splits p after its first blank line. Lines end in LF or CRLF.
func cutFrame(p []byte) (frame, rest []byte, found bool) {
	for from := 0; ; {
		i := bytes.IndexByte(p[from:], '\n')
		if i < 0 {
			return nil, p, false
		}
		line := p[from : from+i]
		if len(line) == 0 || (len(line) == 1 && line[0] == '\r') {
			return p[:from], p[from+i+1:], true
		}
		from += i + 1
	}
}
