package native

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// LoadStream encodes a load that a client has asked for, with the events that a chat has of one:
//
//	(model_load.start .progress*)? (.end | error)
//
// Beyond those of a chat, model_load.end has the result.
type LoadStream struct{ load Stream }

// Append appends what the client receives of the progress of a load.
func (s *LoadStream) Append(dst []byte, ev translate.Load) []byte { return s.load.appendLoad(dst, ev) }

// End appends the end of a load that succeeded. The result is the body of a response in one piece.
func (s *LoadStream) End(dst []byte, instance string, seconds float64, result any) []byte {
	if !s.load.load.started {
		dst = s.Append(dst, translate.Load{Phase: translate.PhaseProgress, Instance: instance})
	}
	fields := append(jsonbody.AppendString([]byte(`"model_instance_id":`), instance), `,"load_time_seconds":`...)
	fields = append(jsonbody.AppendJSON(fields, seconds), `,"result":`...)
	return appendEvent(dst, "model_load.end", string(fields), jsonbody.AppendJSON(nil, result))
}

// Fail appends the end of a load that failed.
func (s *LoadStream) Fail(dst []byte, err *translate.Error) []byte {
	return appendEvent(dst, "error", `"error":`, AppendErrorObject(nil, err))
}
