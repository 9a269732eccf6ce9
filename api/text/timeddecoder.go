package text

import (
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// timedDecoder is a decoder that measures an engine's answer from here, and refuses one that is too large to be gathered.
type timedDecoder struct {
	run     *Run
	decoder translate.Decoder
	bound   *contextLimit
	each    func(translate.Event) error // take, which is made a function once
	emit    func(translate.Event) error // what take emits to

	now                time.Time // of the last read
	began, first, last time.Time // last: when the last token came
	isResumed          bool      // since then
	tokens             int       // one to a piece
	reads              int       // from the engine
	firstRead          int       // the one that the first token came with
	atOnce             int       // tokens that came with it
	hasTimings         bool      // the engine has sent its own
	hasStop            bool      // the engine has said why it ended
}

func newTimedDecoder(r *Run, resp *Response, decoder translate.Decoder) *timedDecoder {
	m := &timedDecoder{run: r, decoder: decoder, bound: &resp.contextLimit, began: time.Now()}
	m.each = m.take
	return m
}

// Feed decodes p.
func (m *timedDecoder) Feed(p []byte, emit func(translate.Event) error) error {
	m.emit = emit
	m.hasRead()
	return m.decoder.Feed(p, m.each)
}

// hasRead notes that something has come. All tokens of a read have come at the same time.
func (m *timedDecoder) hasRead() {
	m.now = time.Now()
	m.reads++
}

// Close ends the stream.
func (m *timedDecoder) Close(emit func(translate.Event) error) error {
	m.emit, m.now = emit, time.Now()
	return m.decoder.Close(m.each)
}

// Figures returns the engine's usage and timings so far.
func (m *timedDecoder) Figures() (translate.Usage, translate.Timings) {
	if inner, ok := m.decoder.(wire.Measurer); ok {
		return inner.Figures()
	}
	return translate.Usage{}, translate.Timings{}
}

func (m *timedDecoder) take(it translate.Event) error {
	switch it.(type) {
	case translate.Fault, translate.Finish:
		if m.tokens > 0 && !m.hasTimings {
			if err := m.emit(m.timings()); err != nil {
				return err
			}
		}
	}
	switch ev := it.(type) {
	case translate.Fault:
		return m.emit(it)
	case translate.Usage:
		if bounded := m.bound.usage(ev); bounded != ev {
			it = bounded
		}
	case translate.Finish:
		if m.bound.isFull && !m.hasStop && ev.Reason == translate.FinishLength {
			if err := m.emit(translate.Stop{Reason: translate.StopContext}); err != nil {
				return err
			}
		}
	}
	if m.note(it) {
		if err := m.emit(translate.FirstToken{After: m.run.SinceArrival()}); err != nil {
			return err
		}
	}
	if err := m.emit(it); err != nil || m.run.Stream != nil && !m.run.Gathers {
		return err
	}
	if m.run.Request.gather(it) != nil {
		_ = m.emit(translate.Fault{Err: AnswerTooLarge()})
		return translate.ErrCut
	}
	return nil
}

// note looks at an event. It tells whether the answer begins with it.
func (m *timedDecoder) note(ev translate.Event) (isFirst bool) {
	switch ev.(type) {
	case translate.Prompt:
		return false
	case translate.Reasoning, translate.Text, translate.CallArgs:
		if m.isResumed && m.tokens > 0 {
			lost := m.now.Sub(m.last)
			m.began, m.first = m.began.Add(lost), m.first.Add(lost)
		}
		if m.tokens++; m.tokens == 1 {
			m.firstRead = m.reads
		}
		if m.reads == m.firstRead {
			m.atOnce++
		}
		m.last, m.isResumed = m.now, false
	case translate.Timings:
		m.hasTimings = true
	case translate.Stop:
		m.hasStop = true
	}
	if isFirst = m.first.IsZero(); isFirst {
		m.first = m.now
	}
	return isFirst
}

// leastMeasured is the shortest time over which a speed is measured. What comes faster was held back on its way.
const leastMeasured = 20 * time.Millisecond

// timings are what was measured. The tokens that came together with the first one were generated before it came. If these are all of
// them, it isn't known which part of the time was the prompt's.
func (m *timedDecoder) timings() translate.Timings {
	if m.atOnce > 1 && m.atOnce == m.tokens {
		return translate.Timings{PredictedMillis: millis(m.last.Sub(m.began))}
	}
	took := max(0, m.last.Sub(m.first)) // of a single token, first is the later one
	t := translate.Timings{PromptMillis: millis(m.first.Sub(m.began)), PredictedMillis: millis(took)}
	if took >= leastMeasured {
		t.PredictedPerSecond = float64(m.tokens-m.atOnce) / took.Seconds()
	}
	return t
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

var (
	_ translate.Decoder = (*timedDecoder)(nil)
	_ wire.Measurer     = (*timedDecoder)(nil)
)
