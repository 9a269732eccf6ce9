package llamaserver

import (
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// keepFirstCall removes the pieces of all calls but the first from the chunk. It returns false if nothing is left.
func (c *chunk) keepFirstCall() bool {
	if c.calls == nil {
		return true
	}
	kept := []byte{'['}
	dropped := false
	for _, call := range gjson.ParseBytes(c.calls).Array() {
		if call.Get("index").Int() > 0 {
			dropped = true
			continue
		}
		kept = append(jsonbody.AppendComma(kept), call.Raw...)
	}
	if !dropped {
		return true
	}
	c.setCalls(append(kept, ']'))
	return c.delta != nil || c.finish != nil
}

// setCalls replaces the delta by one with only calls, or by none.
func (c *chunk) setCalls(calls []byte) {
	c.calls, c.delta, c.thinking = nil, nil, -1
	if len(calls) > len("[]") {
		c.delta = append(append([]byte(`{"tool_calls":`), calls...), '}')
		c.calls = c.delta[len(`{"tool_calls":`) : len(c.delta)-1]
	}
}

// completeCalls adds the arguments that llama-server leaves out of a piece while they are empty: clients concatenate them
// without checking.
func (r *rewriter) completeCalls(c *chunk) {
	if c.calls == nil {
		return
	}
	made := []byte{'['}
	changed := false
	for _, call := range gjson.ParseBytes(c.calls).Array() {
		index, function := int(call.Get("index").Int()), call.Get("function")
		isBare := function.Get("arguments").Str == ""
		if !isBare {
			r.bare = slices.DeleteFunc(r.bare, func(i int) bool { return i == index })
		} else if function.Get("name").Exists() {
			r.bare = append(r.bare, index)
		}
		completed := call.Raw
		if isBare && function.IsObject() && !function.Get("arguments").Exists() {
			changed = true
			completed, _ = sjson.Set(completed, "function.arguments", "")
		}
		made = append(jsonbody.AppendComma(made), completed...)
	}
	if changed {
		c.replaceCalls(append(made, ']'))
	}
}

// replaceCalls replaces the calls within the delta.
func (c *chunk) replaceCalls(calls []byte) {
	at := cap(c.delta) - cap(c.calls)
	if c.thinking > at {
		c.thinking += len(calls) - len(c.calls)
	}
	c.delta = slices.Concat(c.delta[:at], calls, c.delta[at+len(c.calls):])
	c.calls = c.delta[at : at+len(calls)]
}
