package ollama

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/translate/request"
)

// dontThink turns thinking off, or to the lowest effort that the model offers.
func (r *Request) dontThink() {
	if r.caps.CanBeSilent() {
		r.edit.Set("chat_template_kwargs", `{"enable_thinking":false}`)
		r.edit.Set("reasoning_effort", `"none"`)
		r.Chat.Thinks = false
	} else if offered := r.caps.Efforts(); len(offered) > 0 {
		r.edit.Set("reasoning_effort", `"`+request.NearestEffort(0, offered)+`"`)
	}
}

// think turns thinking on, with the offered effort that is nearest to a level; empty: the model's own.
func (r *Request) think(level string) {
	if r.caps.CanBeSilent() {
		r.edit.Set("chat_template_kwargs", `{"enable_thinking":true}`)
	}
	offered := r.caps.Efforts()
	if level == "" || len(offered) == 0 {
		return
	}
	if nearest := request.NearestEffort(slices.Index(request.Efforts, level), offered); nearest != request.Efforts[0] {
		r.edit.Set("reasoning_effort", `"`+nearest+`"`)
	}
}
