package text

import (
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// timedDecoder is a decoder that measures an engine's answer from here, and refuses one that is too large to be gathered.
type timedDecoder struct {
	wire.Filter
	run   *Run
	bound *contextLimit

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

// Feed decodes p. All tokens of a read have come at the same time.
func (m *timedDecoder) Feed(p []byte, emit func(translate.Event) error) error {
	m.now = time.Now()
	m.reads++
	return m.Filter.Feed(p, emit)
}

func (m *timedDecoder) Close(emit func(translate.Event) error) error {
	m.now = time.Now()
	return m.Filter.Close(emit)
}

func (m *timedDecoder) event(it translate.Event) {
	switch it.(type) {
	case translate.Fault, translate.Finish:
		if m.tokens > 0 && !m.hasTimings {
			m.Emit(m.timings())
		}
	}
	switch ev := it.(type) {
	case translate.Fault:
		m.Emit(it)
		return
	case translate.Usage:
		if bounded := m.bound.usage(ev); bounded != ev {
			it = bounded
		}
	case translate.Finish:
		if m.bound.isFull && !m.hasStop && ev.Reason == translate.FinishLength {
			m.Emit(translate.Stop{Reason: translate.StopContext})
		}
	}
	if m.note(it) {
		m.Emit(translate.FirstToken{After: m.run.SinceArrival()})
	}
	m.Emit(it)
	if gathers := m.run.Stream == nil || m.run.Gathers; gathers && m.run.Request.gather(it) != nil {
		m.Emit(translate.Fault{Err: AnswerTooLarge()})
		m.Cut()
	}
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

// timings are what was measured. What came together with the first token was generated before, in a part of the time unknown.
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
