package wire

// stopFinder searches for stop strings in a text that comes in pieces. An engine would also find them in the model's thinking
// and in its calls.
//
// The result doesn't depend on the pieces: it is the string that ends first, and the longest of those that end at the same
// place.
type stopFinder struct {
	stops []stopString
	held  []byte // end of the text that may be the start of a stop string
	met   string // the string found; empty if none
}

// stopString is a string to search for, with the algorithm of Knuth, Morris and Pratt.
type stopString struct {
	text   string
	back   []int // for each length of a matched prefix, the length of the next shorter one that ends at the same place
	length int   // of the prefix that the text ends with
}

func newStopFinder(stops []string) *stopFinder {
	f := &stopFinder{stops: make([]stopString, len(stops))}
	for i, text := range stops {
		s := stopString{text: text, back: make([]int, len(text)+1)}
		for n := 1; n < len(text); n++ {
			s.next(text[n])
			s.back[n+1] = s.length
		}
		s.length = 0
		f.stops[i] = s
	}
	return f
}

// next advances by the next byte of the text.
func (s *stopString) next(c byte) {
	for s.length > 0 && s.text[s.length] != c {
		s.length = s.back[s.length]
	}
	if s.text[s.length] == c {
		s.length++
	}
}

// feed adds a piece and returns the text that can be emitted. Text after a stop string is dropped.
func (f *stopFinder) feed(piece string) string {
	from := len(f.held)
	f.held = append(f.held, piece...)
	for at := from; at < len(f.held); at++ {
		for i := range f.stops {
			s := &f.stops[i]
			if s.next(f.held[at]); s.length == len(s.text) && len(s.text) > len(f.met) {
				f.met = s.text
			}
		}
		if f.met != "" {
			return f.take(at + 1 - len(f.met))
		}
	}
	longest := 0
	for i := range f.stops {
		longest = max(longest, f.stops[i].length)
	}
	return f.take(len(f.held) - longest)
}

// take returns the first n bytes of what is held.
func (f *stopFinder) take(n int) string {
	text := string(f.held[:n])
	f.held = append(f.held[:0], f.held[n:]...)
	return text
}

// rest returns the held text, because the text ends or is interrupted, and restarts the search.
func (f *stopFinder) rest() string {
	for i := range f.stops {
		f.stops[i].length = 0
	}
	if f.met != "" {
		return ""
	}
	return f.take(len(f.held))
}
