package llama

import (
	"encoding/json"
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// ParseTokenize parses a request to /tokenize.
func ParseTokenize(body *jsonbody.Body) (wire.Text, *translate.Error) {
	r := body.Fields()
	q := wire.Text{
		Content: r.Given("content"), AddSpecial: r.Bool("add_special"), ParseSpecial: r.BoolOr("parse_special", true), Pieces: r.Bool("with_pieces"),
	}
	return q, r.Err
}

// ParseDetokenize parses a request to /detokenize. vocabulary is how many tokens the model knows; 0: unknown.
func ParseDetokenize(body *jsonbody.Body, vocabulary int) (json.RawMessage, *translate.Error) {
	tokens := body.Value("tokens")
	switch {
	case !jsonbody.IsGiven(tokens):
		return nil, translate.Missing("tokens")
	case jsonbody.TypeOf(tokens) != jsonbody.AnArray:
		return nil, jsonbody.WrongJSON("tokens", "an array", tokens)
	}
	for item := range jsonbody.Elements(tokens) {
		if n, err := strconv.ParseUint(string(item), 10, 31); err != nil || vocabulary > 0 && n >= uint64(vocabulary) {
			return nil, NoToken()
		}
	}
	return tokens, nil
}

// NoToken is the error of ids that the model doesn't have.
func NoToken() *translate.Error {
	return translate.BadValue("tokens", "must hold ids of the model's tokens.")
}

// Props is the answer to /props, as far as it is known without asking the engine.
type Props struct {
	Defaults struct {
		Params  map[string]any `json:"params"`
		Context int            `json:"n_ctx"` // in tokens
	} `json:"default_generation_settings"`
	Slots      int    `json:"total_slots"`
	Alias      string `json:"model_alias"`
	Path       string `json:"model_path"` // the file's name alone
	Modalities struct {
		Vision bool `json:"vision"`
		Audio  bool `json:"audio"`
	} `json:"modalities"`
	Template string `json:"chat_template"`
	Build    string `json:"build_info"`
	Sleeps   bool   `json:"is_sleeping"` // the model isn't loaded
}

// Slot is an element of the answer to /slots.
type Slot struct {
	ID            int  `json:"id"`
	Context       int  `json:"n_ctx"` // in tokens
	IsSpeculative bool `json:"speculative"`
	IsProcessing  bool `json:"is_processing"`
}
