package wire

// stopFinder looks for stop strings in a text that comes in pieces. The engine can't: it would find them in the model's
// thinking and in the calls that it makes, too, which the strings aren't meant for.
//
// What is found depends on the text alone, not on its pieces: the string that is complete first, and the longest of those
// that are complete at the same place.
type stopFinder struct {
	stops []stopString
	held  []byte // the end of the text, as far as a stop string may begin in it
	met   string // the string that was found; empty: none yet
}

// stopString is a string that is looked for, by the algorithm of Knuth, Morris and Pratt.
type stopString struct {
	text   string
	back   []int // for each length of a matched beginning, the length of the next shorter one that ends at the same place
	length int   // of the beginning that the text ends with
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

// next takes the text's next byte.
func (s *stopString) next(c byte) {
	for s.length > 0 && s.text[s.length] != c {
		s.length = s.back[s.length]
	}
	if s.text[s.length] == c {
		s.length++
	}
}

// feed takes a piece and returns what can be told of the text. What comes after a stop string is dropped.
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

// rest returns what is held, since the text is interrupted or at its end. The search begins anew.
func (f *stopFinder) rest() string {
	for i := range f.stops {
		f.stops[i].length = 0
	}
	if f.met != "" {
		return ""
	}
	return f.take(len(f.held))
}
