package translate

// Serial puts the pieces of calls that come interleaved in order, one call after the other, for dialects whose streams have no
// other way to tell them apart. Calls that come one after the other pass without delay.
type Serial struct {
	isOpen bool
	open   int     // the index of the call whose pieces pass
	held   []Event // pieces of other calls
}

// Add passes ev, and whatever it releases, to emit.
func (s *Serial) Add(ev Event, emit func(Event)) {
	index, isPiece := pieceOf(ev)
	switch {
	case !isPiece:
		switch ev.(type) {
		case Round, Reasoning, Text, Finish, Fault: // no more pieces come of the calls that are open
			s.release(emit)
		}
		emit(ev)
	case s.isOpen && index != s.open:
		s.held = append(s.held, ev)
	default:
		s.pass(ev, index, emit)
	}
}

// pass emits a piece of the open call, or of one that is opened by it.
func (s *Serial) pass(ev Event, index int, emit func(Event)) {
	switch ev.(type) {
	case CallStart:
		s.isOpen, s.open = true, index
	case CallDone:
		s.isOpen = false
	}
	emit(ev)
	if !s.isOpen && len(s.held) > 0 {
		held := s.held
		s.held = nil
		for _, ev := range held {
			s.Add(ev, emit)
		}
	}
}

// release emits what is held, each call in one piece.
func (s *Serial) release(emit func(Event)) {
	s.isOpen = false
	for len(s.held) > 0 {
		held := s.held
		s.held = nil
		first, _ := pieceOf(held[0])
		for _, ev := range held {
			if index, _ := pieceOf(ev); index == first {
				emit(ev)
			} else {
				s.held = append(s.held, ev)
			}
		}
	}
}

func pieceOf(ev Event) (index int, ok bool) {
	switch ev := ev.(type) {
	case CallStart:
		return ev.Index, true
	case CallArgs:
		return ev.Index, true
	case CallDone:
		return ev.Index, true
	default:
		return 0, false
	}
}
