package request

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Caps describes what a model and its engine can do, as far as is known without loading it.
type Caps struct {
	Vision bool // accepts images
	Audio  bool // accepts recordings
	// OmitsUnseen says that content that the model can't take is left out, with a note to the model, and not refused.
	OmitsUnseen bool
	MaxContext  int  // maximum context length in tokens; 0 if unknown
	Vocabulary  int  // number of tokens that the model knows; 0 if unknown
	RawGrammar  bool // requests may have a grammar, if the engine supports it

	// Reasoning has the settings for how much the model thinks: some of "off", "low", "medium", "high" and "on". It is
	// empty if the model has no settings, and nil if that is unknown.
	Reasoning []string

	// Template is what is known of the model's chat template; nil if it was never rendered.
	Template *Template

	// Fields of the engine besides Sampling and TextSampling.
	ChatFields, TextFields Fields

	NoLogprobsWithTools bool // the engine gives no log probabilities if there are tools
}

// Thinks reports whether a model may think before it answers. It is true if that is unknown.
func (c *Caps) Thinks() bool { return c.Reasoning == nil || len(c.Reasoning) > 0 }

// CanBeSilent reports whether the thinking of a model can be turned off. It is true if that is unknown.
func (c *Caps) CanBeSilent() bool { return c.Reasoning == nil || slices.Contains(c.Reasoning, "off") }

// TakesGrammar reports whether the engine supports the field "grammar" of a chat.
func (c *Caps) TakesGrammar() bool { return c.ChatFields["grammar"] != nil }

// Medium is a kind of content besides text.
type Medium string

// The media that clients send. Engines take images and audio, if the model has a projector for them.
const (
	MediumImage    Medium = "image"
	MediumDocument Medium = "document"
	MediumAudio    Medium = "audio"
	MediumVideo    Medium = "video"
)

func (m Medium) omitted() string {
	if m == MediumImage {
		return "[image omitted: this model can't see images]"
	}
	return "[" + string(m) + " omitted: this model can only read text]"
}

// words are what errors say of the media that models may take.
var words = map[Medium]struct{ one, all, example, choose string }{
	MediumImage: {"an image", "images", "data:image/png;base64,…", "vision"},
	MediumAudio: {"a recording", "recordings", "data:audio/wav;base64,…", "a projector for audio"},
}

// bad is the error of a field that holds a file which isn't as it has to be.
func (m Medium) bad(where, is string) *translate.Error {
	return translate.Refused("invalid_"+string(m), where, "holds %s %s.", words[m].one, is)
}

// Takes reports whether the model takes a medium.
func (c *Caps) Takes(m Medium) bool {
	return c.Vision && m == MediumImage || c.Audio && m == MediumAudio
}

const leaveOut = `The server's option "unsupported_content omit" leaves such content out, with a note to the model.`

// Unseen returns what a model gets in place of content that it can't take. It is an error unless the operator has it left out.
func (c *Caps) Unseen(where string, m Medium) (note translate.Part, _ *translate.Error) {
	if c.OmitsUnseen {
		return translate.Part{Text: m.omitted()}, nil
	}
	says := map[Medium]string{
		MediumImage: "is an image, and the model does not take images: choose a model with vision, or send none. ",
		MediumAudio: "is a recording, and the model does not take recordings: choose a model with a projector for audio, or send none. ",
	}[m]
	if says == "" {
		says = "is of the kind " + string(m) + ", which this server does not take: send text or images. "
	}
	return note, translate.Refused("unsupported_content", where, "%s", says+leaveOut)
}

// Seen returns the items of a stored conversation as the model can take them: with notes in place of files that it doesn't take. It is an
// error unless the operator has them left out. The items themselves aren't changed.
func (c *Caps) Seen(model string, items []translate.Item) ([]translate.Item, *translate.Error) {
	isCopy := false
	for i := range items {
		for n, part := range items[i].Parts {
			if part.Media == nil || c.Takes(Medium(part.Media.Medium())) {
				continue
			}
			if !c.OmitsUnseen {
				w := words[Medium(part.Media.Medium())]
				return nil, translate.Invalid("unsupported_content", "model", "The conversation has "+w.all+", which the model "+model+
					" does not take: choose a model with "+w.choose+". "+leaveOut)
			}
			if !isCopy {
				items, isCopy = slices.Clone(items), true
			}
			items[i].Parts = slices.Clone(items[i].Parts)
			items[i].Parts[n] = translate.Part{Text: Medium(part.Media.Medium()).omitted()}
		}
	}
	return items, nil
}
