package request

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// A client may require a call. With tool_choice "required" engines let the model write anything before the call, and a weak
// model never gets to it. So the answer must match a schema instead: an object with the name of a tool and its arguments.
// That answer is then decoded to a call.
//
// A client may also offer tools and want an answer in a format. llama-server can't look for calls in such an answer: depending on the
// template it makes none, ignores the format, or fails. So its answer must match either the format or the schema of a call.

// Limits of an answer that must be a call, if the request sets none: a weak model goes on for as long as its schema allows.
const (
	MaxForcedTokens = 16384 // of the whole answer, including reasoning
	MaxCallTokens   = 4096  // of the call
)

// Either is an answer that is a call of a tool, or else in the client's format.
type Either struct {
	Format string   // the response_format that allows both
	Tools  []string // names
}

// Promises are the schemas that the parts of an answer have to match, as far as the engine doesn't hold it to them: they are checked
// when the answer is complete.
type Promises struct {
	Answer *schema.Promise            // of the text; nil: there is nothing to check
	Calls  map[string]*schema.Promise // of the arguments of calls, by the tools' names
}

// IsEmpty reports whether there is nothing to check.
func (p *Promises) IsEmpty() bool { return p.Answer == nil && len(p.Calls) == 0 }

func (p *Promises) call(tool string, promise *schema.Promise) {
	if promise.Checker == nil {
		return
	}
	if p.Calls == nil {
		p.Calls = map[string]*schema.Promise{}
	}
	p.Calls[tool] = promise
}

// Format sets the response_format of an answer that must match a schema. place is that of the schema in the request.
func (c *Chat) Format(given gjson.Result, place string) (format string, _ *translate.Error) {
	promise, err := schema.Promised(given, schema.Options{Place: place, Definitions: "answer"}, new(schema.Work))
	if err != nil {
		return "", err
	}
	c.format, c.Promises.Answer = promise, nil
	if promise.Checker != nil {
		c.Promises.Answer = promise
	}
	return `{"type":"json_schema","json_schema":{"schema":` + promise.Whole() + `}}`, nil
}

// Offer notes what the model may call. Calls of strict tools have to match their schemas. An answer that has a format, the
// response_format, may be a call or in the format.
func (c *Chat) Offer(tools []Tool, format string) *translate.Error {
	for i := range tools {
		if !tools[i].IsStrict {
			continue
		}
		promise, err := tools[i].promise(schema.Options{IsDefined: true}, new(schema.Work))
		if err != nil {
			return err
		}
		c.Promises.call(tools[i].Name, promise)
	}
	if len(tools) == 0 || format == "" {
		return nil
	}
	answer := c.format
	if answer == nil {
		answer = &schema.Promise{Schema: `{"type":"object"}`}
	}
	f := callFormat{work: new(schema.Work), calls: []byte{'['}}
	c.Either = &Either{}
	for i := range tools {
		f.add(&tools[i], f.offered(&tools[i]))
		c.Either.Tools = append(c.Either.Tools, tools[i].Name)
	}
	c.Either.Format = f.format(answer)
	return nil
}

// Force has the answer be a call of one of the tools, and returns its response_format.
func (c *Chat) Force(tools []Tool) (format string, _ *translate.Error) {
	c.Forced, c.Promises = true, Promises{}
	f := callFormat{work: new(schema.Work), calls: []byte{'['}}
	for i := range tools {
		if tools[i].Server != "" { // the loop checks its calls, and nobody here can change its schema
			f.add(&tools[i], f.offered(&tools[i]))
			continue
		}
		promise, err := tools[i].promise(schema.Options{Definitions: f.prefix()}, f.work)
		if err != nil {
			return "", err
		}
		c.Promises.call(tools[i].Name, promise)
		f.add(&tools[i], promise)
	}
	return f.format(nil), nil
}

func (t *Tool) promise(opt schema.Options, work *schema.Work) (*schema.Promise, *translate.Error) {
	opt.Place, opt.Of, opt.IsObject = t.Place, "the tool "+translate.QuoteShort(t.Name), true
	parameters := gjson.Parse(t.Parameters)
	if !hasArguments(parameters) {
		return &schema.Promise{Schema: `{"type":"object","properties":{},"additionalProperties":false}`}, nil
	}
	return schema.Promised(parameters, opt, work)
}

// callFormat makes the response_format of an answer that is a call.
type callFormat struct {
	work        *schema.Work
	count       int
	calls       []byte // alternatives
	definitions []byte
}

func (f *callFormat) prefix() string { return "t" + strconv.Itoa(f.count) + "d" }

// offered returns what calls of a tool are held to that nobody has been promised.
func (f *callFormat) offered(t *Tool) *schema.Promise {
	promise, err := t.promise(schema.Options{Definitions: f.prefix()}, f.work)
	if err != nil {
		return &schema.Promise{Schema: `{"type":"object"}`}
	}
	return promise
}

func (f *callFormat) add(t *Tool, p *schema.Promise) {
	f.count++
	f.calls = append(jsonbody.AppendComma(f.calls), `{"type":"object","properties":{"name":{"const":`...)
	f.calls = append(jsonbody.AppendString(f.calls, t.Name), `},"arguments":`...)
	f.calls = append(append(f.calls, p.Schema...), `},"required":["name","arguments"],"additionalProperties":false}`...)
	f.define(p)
}

func (f *callFormat) define(p *schema.Promise) {
	if p.Definitions != "" {
		f.definitions = append(f.definitions, ","...)
		f.definitions = append(f.definitions, p.Definitions...)
	}
}

// format returns the response_format of a call, or of another answer if that has a schema.
func (f *callFormat) format(answer *schema.Promise) string {
	if answer != nil {
		f.calls = append(append(f.calls, ','), answer.Schema...)
		f.define(answer)
	}
	whole := schema.Promise{Schema: `{"anyOf":` + string(f.calls) + `]}`, Definitions: strings.TrimPrefix(string(f.definitions), ",")}
	return `{"type":"json_schema","json_schema":{"schema":` + whole.Whole() + `}}`
}

// hasArguments reports whether a schema says more than that it is of objects. A tool whose schema doesn't has no arguments.
func hasArguments(parameters gjson.Result) (has bool) {
	parameters.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "title", "description", "$schema", "$id", "strict":
		case "type":
			has = has || value.Str != "object"
		case "required":
			has = has || value.Get("0").Exists()
		case "additionalProperties":
			has = has || value.Type != gjson.False
		default:
			has = true
		}
		return !has
	})
	return has
}
