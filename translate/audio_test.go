package translate_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

var hears = request.Caps{Audio: true}

// heardBy returns the messages of the engine's request for one of each dialect that has recordings.
var heardBy = map[string]func(*jsonbody.Body) (gjson.Result, *translate.Error){
	"chat": func(body *jsonbody.Body) (gjson.Result, *translate.Error) {
		chat, err := openai.ParseChat(body, capsOf(hears))
		if err != nil {
			return gjson.Result{}, err
		}
		return gjson.ParseBytes(chat.Edit.Value(body, "messages")), nil
	},
	"responses": func(body *jsonbody.Body) (gjson.Result, *translate.Error) {
		r, err := responses.Parse(body, capsOf(hears))
		if err != nil {
			return gjson.Result{}, err
		}
		messages := request.MessagesOf(r.Input)
		return gjson.ParseBytes(messages.Array()), nil
	},
	"native": func(body *jsonbody.Body) (gjson.Result, *translate.Error) {
		c, err := native.ParseChat(body, "m", capsOf(hears))
		if err != nil {
			return gjson.Result{}, err
		}
		messages := request.MessagesOf([]translate.Item{c.Input})
		return gjson.ParseBytes(messages.Array()), nil
	},
	"ollama": func(body *jsonbody.Body) (gjson.Result, *translate.Error) {
		asked, err := ollama.ParseChat(body, capsOf(hears))
		if err != nil {
			return gjson.Result{}, err
		}
		upstream, err := asked.Upstream()
		if err != nil {
			return gjson.Result{}, err
		}
		return gjson.ParseBytes(upstream.Value("messages")), nil
	},
}

// around are the requests of the dialects around a recording, and the place of its data.
var around = map[string][3]string{
	"chat":      {`{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":`, `}]}]}`, "messages[0].content[0].input_audio"},
	"responses": {`{"input":[{"role":"user","content":[{"type":"input_audio","input_audio":`, `}]}]}`, "input[0].content[0].input_audio"},
	"native":    {`{"input":[{"type":"audio","data_url":`, `}]}`, "input[0].data_url"},
	"ollama":    {`{"messages":[{"role":"user","content":"","images":[`, `]}]}`, "messages[0].images[0]"},
}

// TestAudio_ReachesTheEngine as a part of OpenAI's chats, from each dialect, in each format and without tags.
func TestAudio_ReachesTheEngine(t *testing.T) {
	t.Parallel()
	for format, file := range map[string][]byte{"wav": testkit.WAV(8), "mp3": testkit.MP3(2), "flac": testkit.FLAC(8)} {
		data := base64.StdEncoding.EncodeToString(file)
		part := `{"data":"` + data + `","format":"` + format + `"}`
		for dialect, read := range heardBy {
			given := part
			switch dialect {
			case "native":
				given = `"data:audio/any;base64,` + data + `"`
			case "ollama":
				given = `"` + data + `"`
			}
			messages, err := read(testkit.Scan(t, around[dialect][0]+given+around[dialect][1]))
			if err != nil {
				t.Errorf("%s, %s: %v", dialect, format, err)
				continue
			}
			if got := messages.Get(`0.content.#(type=="input_audio").input_audio`).Raw; got != part {
				t.Errorf("%s, %s: %s", dialect, format, messages)
			}
		}
	}
}

// TestAudio_Refused names the field.
func TestAudio_Refused(t *testing.T) {
	t.Parallel()
	long := base64.StdEncoding.EncodeToString(testkit.FLAC(20 * 60 * 16_000))
	for name, tt := range map[string]struct{ dialects, given, field, code, says string }{
		"null":            {"chat responses", `null`, "", "missing_required_parameter", "is required"},
		"a text":          {"chat responses", `"AAAA"`, "", "invalid_type", "must be an object"},
		"an array":        {"chat responses", `[]`, "", "invalid_type", "must be an object"},
		"nothing in it":   {"chat responses", `{}`, ".data", "missing_required_parameter", "is required"},
		"null data":       {"chat responses", `{"data":null,"format":"wav"}`, ".data", "missing_required_parameter", "is required"},
		"no data":         {"chat responses", `{"data":"","format":"wav"}`, ".data", "", ""},
		"a number":        {"chat responses", `{"data":7,"format":"wav"}`, ".data", "invalid_type", "must be a string"},
		"no format":       {"chat responses", `{"data":"` + testkit.Sound + `"}`, ".format", "missing_required_parameter", "is required"},
		"null format":     {"chat responses", `{"data":"` + testkit.Sound + `","format":null}`, ".format", "missing_required_parameter", "is required"},
		"wrong format":    {"chat responses", `{"data":"` + testkit.Sound + `","format":"mp3"}`, ".format", "invalid_value", `must be "wav", as the data are.`},
		"not base64":      {"chat responses", `{"data":"*","format":"wav"}`, ".data", "invalid_audio", "holds no valid base64."},
		"an image":        {"chat responses", `{"data":"` + testkit.Pixel + `","format":"wav"}`, ".data", "invalid_audio", "holds a recording that is not a WAV, MP3 or FLAC file."},
		"too large":       {"chat responses", `{"data":"` + strings.Repeat("AAAA", 10<<20) + `","format":"wav"}`, ".data", "invalid_audio", "holds a recording that is larger than 20 MiB: send a smaller one."},
		"null, native":    {"native", `null`, "", "missing_required_parameter", "is required"},
		"empty, native":   {"native", `""`, "", "invalid_audio_url", "must be a base64 data URL of a recording"},
		"a URL":           {"native", `"https://example.org/a.wav"`, "", "invalid_audio_url", "must be a base64 data URL of a recording"},
		"no data, URL":    {"native", `"data:audio/wav;base64,"`, "", "invalid_audio", "holds no valid base64."},
		"an image, URL":   {"native", `"data:audio/wav;base64,` + testkit.Pixel + `"`, "", "invalid_audio", "is not a WAV"},
		"null, ollama":    {"ollama", `null`, "", "invalid_type", "must be a string of base64"},
		"image, ollama":   {"ollama", `"` + testkit.Pixel + `"`, "", "unsupported_content", "does not take images"},
		"cut, ollama":     {"ollama", `"` + testkit.Sound[:20] + `"`, "", "invalid_audio", "holds a recording that is damaged, cut off,"},
		"nothing, ollama": {"ollama", `""`, "", "unsupported_content", "does not take images"},
	} {
		for dialect := range strings.FieldsSeq(tt.dialects) {
			_, err := heardBy[dialect](testkit.Scan(t, around[dialect][0]+tt.given+around[dialect][1]))
			if err == nil || err.Status() != 400 || err.Param != around[dialect][2]+tt.field || tt.code != "" && err.EffectiveCode() != tt.code || !strings.Contains(err.Message, tt.says) {
				t.Errorf("%s, %s: %+v", dialect, name, err)
			}
		}
	}
	for dialect, body := range map[string]string{
		"chat": `{"messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "responses": `{"input":[{"role":"user","content":[{"type":"input_audio"}]}]}`,
	} {
		if _, err := heardBy[dialect](testkit.Scan(t, body)); err == nil || err.Status() != 400 || err.Param != around[dialect][2] {
			t.Errorf("%s, absent: %+v", dialect, err)
		}
	}
	url := `{"type":"audio","data_url":"data:audio/flac;base64,` + long + `"}`
	if _, err := heardBy["native"](testkit.Scan(t, `{"input":[`+url+`,`+url+`,`+url+`]}`)); err != nil {
		t.Errorf("an hour: %v", err)
	}
	if _, err := heardBy["native"](testkit.Scan(t, `{"input":[`+url+`,`+url+`,`+url+`,`+url+`]}`)); err == nil || err.Param != "input[3].data_url" || !strings.Contains(err.Message, "longer than an hour together") {
		t.Errorf("more than an hour: %v", err)
	}
	short := strings.Repeat(`,{"type":"audio","data_url":"data:,`+testkit.Sound+`"}`, 65)
	if _, err := heardBy["native"](testkit.Scan(t, `{"input":[`+short[1:]+`]}`)); err == nil || err.Param != "input[64].data_url" || !strings.Contains(err.Message, "is one of more than 64 recordings: send fewer") {
		t.Errorf("too many: %v", err)
	}
}

// TestAudio_IsToldAgain in the form in which a client sent it.
func TestAudio_IsToldAgain(t *testing.T) {
	t.Parallel()
	c, err := native.ParseChat(testkit.Scan(t, around["native"][0]+`"data:audio/x-wav;base64,`+testkit.Sound+`"`+around["native"][1]), "m", capsOf(hears))
	if err != nil {
		t.Fatal(err)
	}
	_, input := native.Input([]translate.Item{c.Input})
	if got, want := string(input[0]), `{"type":"audio","data_url":"data:audio/wav;base64,`+testkit.Sound+`"}`; got != want {
		t.Errorf("native: %s", got)
	}
	items, err := native.ParseItems("input", gjson.ParseBytes(append(append([]byte{'['}, input[0]...), ']')), translate.RoleUser)
	if diff := cmp.Diff([]translate.Item{c.Input}, items); err != nil || diff != "" {
		t.Errorf("imported: %v (-want +got):\n%s", err, diff)
	}
	if _, err := native.ParseItems("input", gjson.Parse(`[{"type":"audio","data_url":null}]`), translate.RoleUser); err == nil || err.Param != "input[0].data_url" {
		t.Errorf("imported: %v", err)
	}
	if got := string(responses.OutputItems([]translate.Item{c.Input})[0]); !strings.Contains(got, `{"type":"input_audio","input_audio":{"data":"`+testkit.Sound+`","format":"wav"}}`) {
		t.Errorf("responses: %s", got)
	}
}

// TestAudio_WithoutAProjector is refused, or left out with a note.
func TestAudio_WithoutAProjector(t *testing.T) {
	t.Parallel()
	stored := []translate.Item{{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: "a"}, {Media: &translate.Media{Type: "audio/wav"}}, {Media: &translate.Media{Type: "image/png"}}}}}
	for _, tt := range []struct {
		caps request.Caps
		want string
	}{
		{request.Caps{Vision: true}, "has recordings, which the model m does not take: choose a model with a projector for audio."},
		{request.Caps{Audio: true}, "has images, which the model m does not take: choose a model with vision."},
	} {
		if _, err := tt.caps.Seen("m", stored); err == nil || err.Param != "model" || !strings.Contains(err.Message, tt.want) {
			t.Errorf("%+v: %v", tt.caps, err)
		}
	}
	omits := request.Caps{Vision: true, OmitsUnseen: true}
	if got, err := omits.Seen("m", stored); err != nil || got[0].Parts[1].Text != "[audio omitted: this model can only read text]" || got[0].Parts[2].Media == nil || stored[0].Parts[1].Media == nil {
		t.Errorf("%v %+v, of %+v", err, got, stored)
	}
	both := request.Caps{Vision: true, Audio: true}
	if got, err := both.Seen("m", stored); err != nil || &got[0] != &stored[0] {
		t.Errorf("%v %+v", err, got)
	}
}
