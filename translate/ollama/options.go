package ollama

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// numbers are the options that every engine takes.
var numbers = map[string]request.Number{
	"temperature":       {Max: 100},
	"top_p":             {Max: 1},
	"top_k":             {Min: -1, Max: math.MaxInt32, Whole: true},
	"min_p":             {Max: 1},
	"repeat_penalty":    {Max: 100, Above: true},
	"presence_penalty":  {Min: -100, Max: 100},
	"frequency_penalty": {Min: -100, Max: 100},
}

// ofEngine are the options that only some engines take. Others answer without them.
var ofEngine = map[string]bool{"typical_p": true, "repeat_last_n": true, "mirostat": true, "mirostat_tau": true, "mirostat_eta": true}

// withoutEffect are the options that are about how Ollama runs a model. They are accepted, since clients send them.
var withoutEffect = map[string]jsonbody.Types{
	"num_keep": jsonbody.ANumber, "num_batch": jsonbody.ANumber, "num_gpu": jsonbody.ANumber, "main_gpu": jsonbody.ANumber,
	"num_thread": jsonbody.ANumber, "draft_num_predict": jsonbody.ANumber, "tfs_z": jsonbody.ANumber,
	"use_mmap": jsonbody.ABoolean, "use_mlock": jsonbody.ABoolean, "numa": jsonbody.ABoolean, "low_vram": jsonbody.ABoolean,
	"penalize_newline": jsonbody.ABoolean, "f16_kv": jsonbody.ABoolean, "vocab_only": jsonbody.ABoolean, "logits_all": jsonbody.ABoolean,
	"embedding_only": jsonbody.ABoolean,
}

// maxContext bounds num_ctx, so that it doesn't overflow before it reaches an engine.
const maxContext = 1 << 30

// parseOptions parses the options in a field, and has each noted that is right.
func (r *Request) parseOptions(field string, given gjson.Result, note func(name string, v gjson.Result)) (err *translate.Error) {
	switch {
	case given.Type == gjson.Null:
		return nil
	case !given.IsObject():
		return jsonbody.WrongType(field, "an object", given)
	}
	given.ForEach(func(key, value gjson.Result) bool {
		if value.Type == gjson.Null {
			return true
		}
		if err = r.parseOption(field+"."+key.Str, key.Str, value); err == nil {
			note(key.Str, value)
		}
		return err == nil
	})
	return err
}

func (r *Request) parseOption(path, name string, v gjson.Result) (err *translate.Error) {
	if number, ok := numbers[name]; ok {
		number.Name = path
		if err := number.Check(v); err != nil {
			return err
		}
		r.edit.Set(name, v.Raw)
		return nil
	}
	switch {
	case name == "stop": // engines don't receive them: package wire searches for them
		r.Chat.Stops, err = request.ParseStops(path, v)
		return err
	case name == "seed":
		n, err := request.ParseSeed(path, v)
		r.edit.Set("seed", strconv.Itoa(n))
		return err
	case name == "num_predict" || name == "num_ctx":
		n := int(v.Num)
		switch {
		case v.Type != gjson.Number || v.Num != math.Trunc(v.Num) || math.Abs(v.Num) > 1<<53:
			return jsonbody.WrongType(path, "a whole number", v)
		case name == "num_ctx" && n > maxContext:
			return translate.BadValue(path, "must be at most %d.", maxContext)
		case name == "num_ctx":
			r.Context = max(0, n)
		case n > 0: // otherwise there is no limit
			r.edit.Set("max_tokens", strconv.Itoa(min(n, math.MaxInt32)))
		}
		return nil
	case ofEngine[name]:
		return r.parseOfEngine(path, name, v)
	case withoutEffect[name] != 0 && withoutEffect[name]&jsonbody.TypeOf([]byte(v.Raw)) == 0:
		return jsonbody.WrongType(path, withoutEffect[name].String(), v)
	default:
		return nil
	}
}

// parseOfEngine parses an option that the engine takes as a field of the same name, if it is one of its fields.
func (r *Request) parseOfEngine(path, name string, v gjson.Result) *translate.Error {
	check := r.caps.ChatFields[name]
	if check == nil {
		return nil
	}
	var e jsonbody.Edit
	if err := check(v, &r.caps, &e); err != nil {
		other := *err
		other.Param, other.Message = path, strings.Replace(err.Message, `"`+name+`"`, `"`+path+`"`, 1)
		return &other
	}
	if changed := e.Value(&jsonbody.Body{}, name); changed != nil {
		r.edit.Set(name, string(changed))
	} else {
		r.edit.Set(name, v.Raw)
	}
	return nil
}

// KeepAlive parses how long a model stays loaded after a request: a number of seconds, or a text such as "5m". A negative one means
// for ever, which is returned as -1. It is nil if it isn't given.
func KeepAlive(body *jsonbody.Body) (*time.Duration, *translate.Error) {
	const name = "keep_alive"
	v := body.Get(name)
	var d time.Duration
	switch v.Type {
	case gjson.Null:
		return nil, nil
	case gjson.Number:
		if d = -1; v.Num >= 0 {
			d = time.Duration(min(v.Num, maxKeepAlive.Seconds()) * float64(time.Second))
		}
	case gjson.String:
		var err error
		if d, err = time.ParseDuration(v.Str); err != nil {
			return nil, translate.BadValue(name,
				`must be a number of seconds or a duration such as "5m", not %s.`, translate.QuoteShort(v.Str))
		}
		d = min(d, maxKeepAlive)
	default:
		return nil, jsonbody.WrongType(name, "a number of seconds or a duration", v)
	}
	if d < 0 {
		d = -1
	}
	return &d, nil
}

// maxKeepAlive is the longest time that isn't for ever: about 30 years.
const maxKeepAlive = 1_000_000_000 * time.Second
