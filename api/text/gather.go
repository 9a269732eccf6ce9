package text

import (
	"github.com/lmcaddy/lmcaddy/translate"
)

// gather counts what an event adds to an answer that is gathered.
func (rq *Request) gather(ev translate.Event) error {
	n := 0
	switch ev := ev.(type) {
	case translate.Text:
		n = len(ev.Text)
	case translate.Reasoning:
		n = len(ev.Text)
	case translate.CallStart:
		n = len(ev.ID) + len(ev.Name)
	case translate.CallArgs:
		n = len(ev.Text)
	case translate.CallResult:
		n = len(ev.Output)
	case translate.Logprobs:
		n = len(ev.Content)
	}
	return rq.GatherBytes(n)
}

// GatherBytes counts bytes of an answer that is gathered. The error says that they are too many.
func (rq *Request) GatherBytes(n int) error {
	if rq.gathered.Add(int64(n)) > rq.Call.Site.MaxGathered {
		return AnswerTooLarge()
	}
	return nil
}

// AnswerTooLarge refuses an answer that is too large to be gathered.
func AnswerTooLarge() *translate.Error {
	return translate.Invalid("answer_too_large", "",
		"The answer is larger than 64 MiB, which is as much as is kept for one request. Ask for a stream, or for fewer choices (n), tokens, log probabilities, inputs or calls of tools.")
}
