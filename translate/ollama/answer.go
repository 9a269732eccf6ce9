// Package ollama reads the requests of Ollama's API, and writes its answers: lines of JSON, or one object.
package ollama

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Answer encodes the events of an answer to a chat, or to a request to generate: as lines of JSON, of which the last one has the
// figures, or as one object at the end.
type Answer struct {
	Model      string // as the client calls it
	Generates  bool   // for POST /api/generate
	IsWhole    bool   // one object
	Logprobs   bool   // the client wants log probabilities
	OnlyChosen bool   // of the chosen tokens only
	Now        func() time.Time
	Took       func() (total, load time.Duration) // since the request arrived, and until the model was ready
	Memory     *Memory                            // what its context holds, without the answer; nil: it has none

	serial  translate.Serial
	outcome translate.Outcome
	tally   translate.Tally
	calls   int             // number of calls told
	open    translate.Event // a CallStart, while its arguments come
	args    []byte          // of the open call

	content, thinking []byte // gathered, or held back until their log probabilities come
	called            []byte // calls that are gathered, separated by commas
	logprobs          []byte // gathered, separated by commas
	said              []byte // the whole text, for the context
}

// Append encodes an event.
func (a *Answer) Append(dst []byte, ev translate.Event) []byte {
	a.serial.Add(ev, func(ev translate.Event) { dst = a.append(dst, ev) })
	return dst
}

func (a *Answer) append(dst []byte, ev translate.Event) []byte {
	a.tally.Add(ev)
	switch ev := ev.(type) {
	case translate.Text:
		dst = a.release(dst)
		a.content = append(a.content, ev.Text...)
		if a.Memory != nil && len(a.said) <= maxMemory {
			a.said = append(a.said, ev.Text...)
		}
		return a.tell(dst, a.Logprobs)
	case translate.Reasoning:
		dst = a.release(dst)
		a.thinking = append(a.thinking, ev.Text...)
		return a.tell(dst, false)
	case translate.Logprobs:
		if a.Logprobs {
			for _, token := range gjson.ParseBytes(ev.Content).Array() {
				a.logprobs = jsonbody.AppendLogprob(jsonbody.AppendComma(a.logprobs), token, a.OnlyChosen, "null")
			}
			return a.tell(dst, false)
		}
	case translate.CallStart:
		a.open, a.args = ev, a.args[:0]
	case translate.CallArgs:
		a.args = append(a.args, ev.Text...)
	case translate.CallDone:
		a.addCall()
		return a.tell(a.release(dst), false)
	case translate.Finish:
		a.outcome.Note(ev)
		return a.end(a.release(dst))
	default:
		a.outcome.Note(ev)
	}
	return dst
}

func (a *Answer) release(dst []byte) []byte {
	if len(a.content) == 0 {
		return dst
	}
	return a.tell(dst, false)
}

// tell appends a line with what was said since the last one, unless it is gathered or waits for its log probabilities.
func (a *Answer) tell(dst []byte, waits bool) []byte {
	if a.IsWhole || waits {
		return dst
	}
	dst = append(a.appendHead(dst), `,"done":false`...)
	if len(a.logprobs) > 0 {
		dst = append(append(append(dst, `,"logprobs":[`...), a.logprobs...), ']')
	}
	a.content, a.thinking, a.called, a.logprobs = a.content[:0], a.thinking[:0], a.called[:0], a.logprobs[:0]
	return append(dst, "}\n"...)
}

func (a *Answer) appendHead(dst []byte) []byte {
	dst = jsonbody.AppendString(append(dst, `{"model":`...), a.Model)
	dst = append(a.Now().UTC().AppendFormat(append(dst, `,"created_at":"`...), time.RFC3339Nano), '"')
	if a.Generates {
		dst = append(dst, `,"response":`...)
	} else {
		dst = append(dst, `,"message":{"role":"assistant","content":`...)
	}
	dst = jsonbody.AppendQuoted(dst, a.content)
	if len(a.thinking) > 0 {
		dst = jsonbody.AppendQuoted(append(dst, `,"thinking":`...), a.thinking)
	}
	if a.Generates {
		return dst
	}
	if len(a.called) > 0 {
		dst = append(append(append(dst, `,"tool_calls":[`...), a.called...), ']')
	}
	return append(dst, '}')
}

// addCall adds the open call. Arguments that are no object are wrapped in one: clients expect nothing else.
func (a *Answer) addCall() {
	start, ok := a.open.(translate.CallStart)
	if !ok {
		return
	}
	a.open = nil
	arguments, err := request.CallArguments("arguments", gjson.Result{Type: gjson.String, Str: string(a.args)})
	if err != nil {
		arguments = "{}"
	}
	id := cmp.Or(start.ID, "call_"+strconv.Itoa(a.calls))
	a.called = jsonbody.AppendString(append(jsonbody.AppendComma(a.called), `{"id":`...), id)
	a.called = strconv.AppendInt(append(a.called, `,"function":{"index":`...), int64(a.calls), 10)
	a.called = jsonbody.AppendString(append(a.called, `,"name":`...), start.Name)
	called := bytes.NewBuffer(append(a.called, `,"arguments":`...))
	if json.Compact(called, []byte(arguments)) != nil { // models may write it in several lines
		called.WriteString("{}")
	}
	a.called = append(called.Bytes(), "}}"...)
	a.calls++
}

// end appends the object that ends the answer. An answer in one piece is nothing else.
func (a *Answer) end(dst []byte) []byte {
	dst = append(a.appendHead(dst), `,"done":true,"done_reason":"`...)
	reason := "stop"
	if a.outcome.Reason == translate.FinishLength {
		reason = "length"
	}
	dst = append(append(dst, reason...), '"')
	if a.Memory != nil {
		dst = a.Memory.Append(append(dst, `,"context":`...), a.said)
	}
	total, load := a.Took()
	usage, timings := a.outcome.Usage, a.outcome.Timings
	if usage == (translate.Usage{}) {
		usage = a.tally.Usage()
	}
	dst = appendNumber(dst, "total_duration", total.Nanoseconds())
	dst = appendNumber(dst, "load_duration", load.Nanoseconds())
	dst = appendNumber(dst, "prompt_eval_count", int64(usage.Prompt))
	dst = appendNumber(dst, "prompt_eval_duration", nanoseconds(timings.PromptMillis))
	dst = appendNumber(dst, "eval_count", int64(usage.Completion))
	dst = appendNumber(dst, "eval_duration", nanoseconds(timings.PredictedMillis))
	if len(a.logprobs) > 0 {
		dst = append(append(append(dst, `,"logprobs":[`...), a.logprobs...), ']')
	}
	dst = append(dst, '}')
	if a.IsWhole {
		return dst
	}
	return append(dst, '\n')
}

func nanoseconds(millis float64) int64 { return int64(millis * float64(time.Millisecond)) }

func appendNumber(dst []byte, name string, n int64) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return strconv.AppendInt(dst, n, 10)
}

// AppendNothing appends the answer to a request that says nothing to the model: reason is "load" or "unload".
func (a *Answer) AppendNothing(dst []byte, reason string) []byte {
	dst = append(append(append(a.appendHead(dst), `,"done":true,"done_reason":"`...), reason...), `"}`...)
	if a.IsWhole {
		return dst
	}
	return append(dst, '\n')
}

// Errors writes errors in the format of Ollama's API.
type Errors struct{}

// Status returns the status of the error's kind, but 503 if the queue is full.
func (Errors) Status(e *translate.Error) int {
	if e.Kind == translate.KindQueueFull {
		return http.StatusServiceUnavailable
	}
	return e.Status()
}

// AppendError appends {"error":"…"}. The format has no other field.
func (Errors) AppendError(dst []byte, e *translate.Error, _ string) []byte {
	return append(jsonbody.AppendString(append(dst, `{"error":`...), e.Message), '}')
}

// NotFound returns the error of a model that isn't there. Clients recognize its words, and pull the model.
func NotFound(name string) *translate.Error {
	return &translate.Error{
		Kind: translate.KindModelNotFound, Param: "model", Message: "model " + strconv.Quote(name) + " not found, try pulling it first",
	}
}

// NotPulled returns the error of a model that can't be pulled, since only its bare name is given and nothing is known of that.
func NotPulled(name string) *translate.Error {
	e := NotFound(name)
	e.Message = "pull model manifest: file does not exist: model " + strconv.Quote(name) + " not found in the built-in list of models; " +
		"name it with its owner, such as hf.co/<owner>/<repository>:Q4_K_M"
	return e
}

// LacksSupport returns the error of a model that can't do something, such as "chat".
func LacksSupport(name, what string) *translate.Error {
	return translate.Invalid("unsupported_model", "model", strconv.Quote(name)+" does not support "+what)
}
